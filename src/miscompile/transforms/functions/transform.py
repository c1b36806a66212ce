"""Function wrapping and function rewriting, after HIRFUZZ (Algorithm 2 and section 3.3.2), for ONNX.

Parts of a graph become model-local functions, which call each other and are called from several places; the results do
not change. Inlining restores the original graph except for duplicated calls, constants that moved into a function, and
the bodies of closures.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from miscompile.base.errors import RejectedDraft, SpecError
from miscompile.base.rng import stream
from miscompile.graph.edges import reads
from miscompile.graph.model import Model
from miscompile.transforms.functions.calls import share_operator, split_call
from miscompile.transforms.functions.compose import (
    Traits,
    call_of,
    cut,
    function_of,
    importing,
    splice,
    with_function,
)
from miscompile.transforms.functions.convex_sets import convex_set
from miscompile.transforms.functions.matches import call_again
from miscompile.transforms.functions.regions import Region, call_depth, calls, regions
from miscompile.transforms.functions.rewrite import Rewrite, rewrite

_TRIES = 6
"""Attempts for each requested function, because some graphs have few suitable sets."""

_MAIN = 0.5
"""Share of the sets taken from the main graph when there are other regions."""

_MOST_OCCURRENCES = 3


@dataclass(frozen=True, slots=True)
class Functions:
    """Wraps parts of a model as functions.

    `count` is the number of wrapped sets, `depth` the greatest resulting nesting of calls, and `rewrite` the rewriting
    that follows (each rewriting adds a level; see `functions.rewrite`). `attributes` is the share of attributes that
    calls pass, `constants` that of initialisers that move into a function, `shared` the probability that all nodes of
    an operator call one function, and that a call is duplicated; `overloads` lets functions differ in their overload
    only, which needs IR version 10.
    """

    may_be_refused: ClassVar[bool] = False
    """A check with this transform is only for targets that take functions."""

    seed: int = 0
    count: int = 2
    depth: int = 3
    rewrite: Rewrite = "none"
    attributes: float = 0.4
    constants: float = 0.3
    shared: float = 0.3
    overloads: bool = False

    def __post_init__(self) -> None:
        """Raise SpecError for values out of range."""
        if self.count < 1 or self.depth < 1:
            raise SpecError("count and depth must be at least 1")
        if not all(0 <= share <= 1 for share in (self.attributes, self.constants, self.shared)):
            raise SpecError("attributes, constants and shared are probabilities: numbers from 0 to 1")

    def apply(self, model: Model) -> Model:
        """Return `model` with functions, drawn from the seed and nothing else; inputs and outputs stay.

        The IR version rises to 8, the first with functions, or further if a function needs it. Raises RejectedDraft
        when no set can be wrapped, or no function can be rewritten as requested.
        """
        rng = stream(self.seed, "functions")
        wrapped = model
        for _ in range(self.count):
            wrapped = self._attempt(wrapped, rng, self._share if rng.random() < self.shared else self._wrap)
            if rng.random() < self.shared:
                wrapped = self._attempt(wrapped, rng, split_call, tries=1)
        if wrapped is model:
            raise RejectedDraft("no part of the model can become a function")
        return rewrite(wrapped, rng, self.rewrite)

    def _attempt(
        self, model: Model, rng: random.Random, step: Callable[[Model, random.Random], Model], tries: int = _TRIES
    ) -> Model:
        """Return `step(model)`; the model itself when every attempt fails or exceeds the nesting limit."""
        limit = max(self.depth, call_depth(model))
        for _ in range(tries):
            try:
                changed = step(model, rng)
            except RejectedDraft:
                continue
            if call_depth(changed) <= limit:
                return changed
        return model

    def _wrap(self, model: Model, rng: random.Random) -> Model:
        """Wrap a set of nodes of some region, and call the function at other occurrences of the same nodes."""
        places = [region for region in regions(model) if region.nodes]
        if not places:
            raise RejectedDraft("the model has no nodes")
        region = places[0] if rng.random() < _MAIN else rng.choice(places)
        chosen = convex_set(rng, region)
        if chosen is None:
            raise RejectedDraft("no node here can be wrapped")
        return _called(model, region, chosen, rng, self._traits)

    def _share(self, model: Model, rng: random.Random) -> Model:
        return importing(share_operator(model, rng, self._traits))

    @property
    def _traits(self) -> Traits:
        return Traits(self.attributes, self.constants, self.overloads)


def wrapped(model: Model, chosen: frozenset[int], rng: random.Random) -> Model:
    """Return `model` with the nodes at these positions of its main graph, a convex set, replaced by a function call.

    Constants stay outside. Raises RejectedDraft when no function can hold the nodes.
    """
    return _called(model, regions(model)[0], chosen, rng, Traits(0.0, 0.0, overloads=False))


def _called(model: Model, region: Region, chosen: frozenset[int], rng: random.Random, traits: Traits) -> Model:
    """Replace a set of nodes, and its other occurrences, by calls."""
    piece = cut(region, chosen, rng, traits)
    function = function_of(piece, model, f"wrapped_{piece.nodes[-1].op}", rng, traits)
    call = call_of(function, piece.inputs, piece.outputs, piece.given)
    changed = with_function(region.put(splice(region.nodes, chosen, call)), function, rng)
    changed = call_again(changed, function, piece, _MOST_OCCURRENCES)
    return importing(_without_unused(changed, frozenset(piece.constants)))


def describe(model: Model) -> dict[str, int]:
    """Return, for reports, a model's number of functions, number of calls, and nesting depth of calls.

    Raises ModelError for recursion.
    """
    return {"functions": len(model.functions), "calls": len(calls(model)), "depth": call_depth(model)}


def _without_unused(model: Model, moved: frozenset[str]) -> Model:
    """Return `model` without the initialisers of its main graph that only functions use now, those in `moved`."""
    graph = model.graph
    used = {name for node in graph.nodes for name in reads(node)}
    used.update(info.name for info in (*graph.inputs, *graph.outputs))
    gone = moved - used
    kept = {name: value for name, value in graph.initializers.items() if name not in gone}
    types = {name: known for name, known in graph.types.items() if name not in gone}
    return replace(model, graph=replace(graph, initializers=kept, types=types)) if gone else model
