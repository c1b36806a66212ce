"""Placing a pattern: an operand of the preceding context for each hole, by strategies in the paper's order.

Operands of exactly the pattern's types come first (concrete), then operands that its operators allow (abstract); a hole
without a compatible operand gets a bridge from another operand (OATest, section 3.2).
"""

import math
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from miscompile.base.dtypes import DTYPES, is_float
from miscompile.base.errors import RejectedDraft
from miscompile.graph.model import TensorType
from miscompile.ops.seed import Seed
from miscompile.ops.spec import Operand, Shape
from miscompile.ops.values import Range
from miscompile.patterns.language import Motif, MotifValue
from miscompile.patterns.lift import constant_holes
from miscompile.patterns.pattern import Pattern
from miscompile.producers.guards import guard
from miscompile.producers.motifs.plant import NONE, Mutations, plant, untried_dtypes
from miscompile.producers.replay import Player
from miscompile.producers.scope import Scope
from miscompile.producers.synthesis.bridge import bridge
from miscompile.producers.synthesis.host import live, same_meaning

PlacementStrategy = Literal["concrete", "abstract", "bridged"]

_BINDINGS = 3
"""Attempts to choose operands before the next strategy is tried."""
_INNER = 0.97
"""Probability that an inner result is preferred to an input of the graph, with a bridge if necessary."""
_SHARED = 0.2
"""Probability that an inner result of an abstract pattern is mutated to be shared."""


@dataclass(frozen=True, slots=True)
class PlacedPattern:
    """A pattern in a scope: its strategy, the operands of the context that it reads, its outputs, and the number of
    bridges.
    """

    strategy: PlacementStrategy
    read: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    bridges: int


@dataclass(frozen=True, slots=True)
class Context:
    """The contents of a scope before a pattern is placed.

    `values` are the operands that are no constants, `inner` the names of those that are results of operators and depend
    on an input of the graph.
    """

    values: tuple[Operand, ...]
    inner: frozenset[str]


def context_of(scope: Scope, fed: Collection[str] | None = None) -> Context:
    """Return the context of all values in `scope`; `fed`, if known, are those that depend on an input of the graph."""
    if fed is None:
        fed = live(scope.nodes, (*scope.inputs, *scope.cycled, *scope.pinned))
    values = tuple(operand for operand in scope.operands.values() if operand.value is None)
    return Context(values, frozenset(one.name for one in values if scope.producer[one.name] and one.name in fed))


@dataclass(slots=True)
class _Filling:
    """Operands for the holes by name, their sources, and the number of bridges."""

    context: Context
    operands: dict[str, Operand] = field(default_factory=dict)
    read: list[Operand] = field(default_factory=list)
    bridges: int = 0

    def inner(self) -> bool:
        """Tell whether an operator's result has been chosen."""
        return any(operand.name in self.context.inner for operand in self.read)


def place(
    scope: Scope, pattern: Pattern, context: Context, mutations: Mutations = NONE, noops: Sequence[Motif] = ()
) -> PlacedPattern:
    """Place `pattern` at the end of `scope`, on operands of `context`.

    Raises RejectedDraft when no strategy succeeds; the scope is then unchanged.
    """
    seed = pattern.seed if pattern.seed is not None and same_meaning(pattern.seed, scope.opset) else None
    motif = pattern.motif
    ways: list[Callable[[bool], PlacedPattern]] = []
    if seed is not None:
        ways.append(lambda _: _concrete(scope, seed, context, bridged=False))
    if motif is not None:
        ways.append(lambda again: _abstract(scope, motif, context, mutations, noops, kept=again))
    if seed is not None:
        ways.append(lambda _: _concrete(scope, seed, context, bridged=True))
    for way in ways:
        for attempt in range(_BINDINGS):
            mark = scope.mark()
            try:
                return way(attempt > 0)
            except RejectedDraft:
                scope.rollback(mark)
    raise RejectedDraft(f"pattern {pattern.name} cannot be placed")


def _concrete(scope: Scope, seed: Seed, context: Context, *, bridged: bool) -> PlacedPattern:
    """Replay the fragment unchanged, on operands of exactly the types of its holes.

    A hole that its operators require to be constant, such as indices into a table, becomes a constant drawn from its
    observed interval.
    """
    filling, drawn = _Filling(context), constant_holes(seed)
    holes = [info for info in seed.graph.inputs if info.name not in seed.pinned and info.name not in drawn]
    spans = {name: (span.lo, span.hi) for name, span in seed.ranges.items()}
    for info in holes:
        assert isinstance(info.type, TensorType)
        pool = [one for one in context.values if (one.dtype, one.shape) == (info.type.dtype, info.type.shape)]
        found = _chosen(scope, pool, filling, last=info is holes[-1])
        if found is None:
            if not bridged:
                raise RejectedDraft("no operand has the type of a hole")
            found = _bridged(scope, info.type.dtype, _sizes(info.type), filling)
        else:
            filling.read.append(found)
        filling.operands[info.name] = _within(scope, found, spans.get(info.name)) if bridged else found
    for info in seed.graph.inputs:
        if info.name in drawn:
            assert isinstance(info.type, TensorType)
            span = Range(*drawn[info.name], integral=not is_float(info.type.dtype))
            filling.operands[info.name] = scope.drawn_constant(info.type.dtype, _sizes(info.type), span)
    player = Player(scope, seed, strict=True)
    player.begin(filling.operands)
    for node in seed.graph.nodes:
        player.play(node)
    outputs = tuple(player.known[info.name] for info in seed.graph.outputs)
    return PlacedPattern("bridged" if filling.bridges else "concrete", tuple(filling.read), outputs, filling.bridges)


def _within(scope: Scope, operand: Operand, span: tuple[float, float] | None) -> Operand:
    """Guard an operand so that it stays in the observed or declared interval of the hole."""
    if span is None or operand.dtype == "bool" or operand.facts.inside(*span):
        return operand
    info = DTYPES[operand.dtype]
    lo, hi = max(span[0], info.low), min(span[1], info.high)
    if not is_float(operand.dtype):
        lo, hi = math.ceil(lo), math.floor(hi)
    return guard(scope, operand, (lo, hi)) if lo < hi else operand


def _abstract(
    scope: Scope, motif: Motif, context: Context, mutations: Mutations, noops: Sequence[Motif], *, kept: bool
) -> PlacedPattern:
    """Plant the motif on operands that its sizes and dtypes allow, with bridges where there is none.

    `kept`: operands are guarded to the interval that the motif declares for new values. Dtypes in which the target has
    refused the motif are not tried again, because bridges to its holes cost most of a splice.
    """
    filling, sizes, holes = _Filling(context), dict[str, int](), motif.holes
    dtype, dtypes = "", untried_dtypes(scope, motif)
    for statement in holes:
        own = statement.dtype
        wanted = (own,) if own else (dtype,) if dtype else dtypes
        pool = [
            one for one in context.values if one.dtype in wanted and _bound(statement, one.shape, sizes) is not None
        ]
        found = _chosen(scope, pool, filling, last=statement is holes[-1])
        if found is None:
            kind = _known_dtype(scope, wanted)
            found = _bridged(scope, kind, _new_shape(statement, sizes, scope), filling)
        else:
            filling.read.append(found)
        sizes = _bound(statement, found.shape, sizes) or sizes
        dtype = dtype or ("" if own else found.dtype)
        filling.operands[statement.name] = _within(scope, found, statement.within) if kept else found
    planted = plant(scope, motif, mutations, noops, holes=filling.operands)
    if planted is None or not planted.results:
        raise RejectedDraft("the motif does not fit")
    rng, uses = scope.rng, scope.uses
    outputs = [one for one in planted.results if not uses[one.name] or rng.random() < _SHARED]
    strategy: PlacementStrategy = "bridged" if filling.bridges else "abstract"
    return PlacedPattern(strategy, tuple(filling.read), tuple(outputs), filling.bridges)


def _known_dtype(scope: Scope, wanted: Sequence[str]) -> str:
    """Choose the dtype of a bridge: preferably one that occurs in the context."""
    present = [name for name in wanted if scope.pool.get(name)]
    return scope.rng.choice(present or list(wanted))


def _chosen(scope: Scope, operands: Sequence[Operand], filling: _Filling, *, last: bool) -> Operand | None:
    """Choose among operands, preferring inner results to inputs of the graph.

    None if there is none, and mostly also if none is an inner result and this is the `last` hole that could get one.
    """
    inner = [operand for operand in operands if operand.name in filling.context.inner]
    if scope.rng.random() >= _INNER:
        return scope.rng.choice(operands) if operands else None
    if last and not inner and not filling.inner():
        return None
    return scope.rng.choice(inner or operands) if operands else None


def _bridged(scope: Scope, dtype: str, shape: Shape, filling: _Filling) -> Operand:
    """Make an operand for a hole from any operand of the context by a bridge."""
    whole = [operand for operand in filling.context.values if 0 not in operand.shape]
    inner = [operand for operand in whole if operand.name in filling.context.inner]
    if not whole:
        raise RejectedDraft("the context has no operand")
    source = scope.rng.choice(inner or whole)
    filling.bridges += 1
    filling.read.append(source)
    return bridge(scope, source, dtype, shape)


def _bound(statement: MotifValue, shape: Shape, sizes: Mapping[str, int]) -> dict[str, int] | None:
    """Return `sizes` with the names that a value of `shape` gives a size; None when the statement does not allow the
    shape.
    """
    if statement.sizes is None:
        return dict(sizes)
    rest = len(shape) - len(statement.sizes)
    if rest < 0 or (rest > 0 and not statement.leading):
        return None
    found = dict(sizes)
    for size, actual in zip(statement.sizes, shape[rest:], strict=True):
        if (found.setdefault(size, actual) if isinstance(size, str) else size) != actual:
            return None
    return found


def _new_shape(statement: MotifValue, sizes: Mapping[str, int], scope: Scope) -> Shape:
    rng: random.Random = scope.rng
    if statement.sizes is None:
        return tuple(rng.randint(1, 4) for _ in range(rng.randint(1, 3)))
    found = dict(sizes)
    for size in statement.sizes:
        if isinstance(size, str):
            found.setdefault(size, rng.randint(2, 6))
    leading = tuple(rng.randint(1, 3) for _ in range(rng.randint(0, 2))) if statement.leading else ()
    return leading + tuple(found[size] if isinstance(size, str) else size for size in statement.sizes)


def _sizes(kind: TensorType) -> Shape:
    return tuple(size for size in kind.shape or () if isinstance(size, int))
