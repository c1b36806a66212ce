"""Programs with symbolic sizes: compiled once, they must give at every size the results of a program of that size.

Graphs come from strict generation. A search finds axes of inputs that can be symbolic together (`search`),
structural constants that depend on them are computed from shapes (`shape_arithmetic`), and a replay of the graph at
each size keeps the sizes at which it is valid and no operator's behaviour is undefined (`plan`).
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from miscompile.base.errors import ModelError, RejectedDraft, UsageError
from miscompile.base.specs import print_spec
from miscompile.core.case import Case, Feed
from miscompile.core.outcome import Outcome, Rejected, Unsupported, Values
from miscompile.core.tensor import Tensor
from miscompile.core.verdict import Verdict
from miscompile.graph.check import check
from miscompile.graph.emit import to_program
from miscompile.ops.registry import specs
from miscompile.ops.spec import Operand
from miscompile.ops.support import Support
from miscompile.ops.values import draw
from miscompile.producers.dynamic.plan import Base, ReplayError, SizePlan, Sizes, require_same_kind
from miscompile.producers.dynamic.planting import plant_sizes
from miscompile.producers.dynamic.search import GENERIC, FoundSymbols, search
from miscompile.producers.dynamic.symbolic import Symbolic, candidates, contradicts, fed, loosened, symbolic
from miscompile.producers.kinds import ProducerKind
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.strict import Strict

SIZES = (0, 1, 2, 3, 5, 8)
ORACLE = "dynamic"

_MOST_DRAFTS = 2000
_MOST_FEEDS = 5
_TWO_SYMBOLS = 0.3
_PLANTED = (0, 1, 1, 2, 3)
"""Numbers of planted size patterns, drawn uniformly."""
_AGAIN = 0.25
"""Share of cases that run the first size again at the end, to find state that other sizes leave behind."""
_EMPTY = 0.6
"""Share of cases that may have sizes of zero, which many kernels refuse in any case."""
_REFUSALS = 4
"""Refusals without a success after which an operand stays constant for this target."""


@dataclass(frozen=True, slots=True)
class _Sized:
    """Values of the graph at some sizes."""

    sizes: Sizes
    known: Mapping[str, Operand]


class DynamicProducer:
    """Producer of programs with symbolic sizes, each with a feed for each of several sizes.

    Some targets refuse an operand that shape arithmetic computes; `learn` stops generating those for the target.
    """

    def __init__(self, options: GeneratorOptions, support: Support) -> None:
        self.options = options
        self.spec = print_spec("dynamic", options)
        self._grower = Strict(replace(options, large=0.0), support)  # it runs at several sizes
        self._taken: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self.drafts = 0

    def propose(self, rng: random.Random) -> Case:
        """Return a new case. Graphs that do not generalise are discarded. Raises UsageError when none does."""
        for _ in range(_MOST_DRAFTS):
            self.drafts += 1
            with suppress(RejectedDraft, ModelError):
                return self._draft(rng)
        raise UsageError("no graph with symbolic sizes comes about under these options; allow more with --ops")

    def learn(self, case: Case, outcomes: Sequence[Outcome], verdict: Verdict) -> None:
        """Count for each computed operand the cases that ran and the cases that the target refused."""
        if case.recipe.get("oracle") != ORACLE or not outcomes:
            return
        refused = any(isinstance(outcome, Unsupported | Rejected) for outcome in outcomes)
        static = isinstance(outcomes[0], Values)
        for mark in case.recipe.get("computed", ()):
            if refused and static:
                self._refused[mark] += 1
            elif not refused:
                self._taken[mark] += 1

    def _barred(self) -> frozenset[str]:
        return frozenset(m for m, count in self._refused.items() if count >= _REFUSALS and not self._taken[m])

    def _draft(self, rng: random.Random) -> Case:
        scope, outputs, recipe = self._grower.grow(rng)
        if not outputs or not all(node.op in specs() or node.op == "Constant" for node in scope.nodes):
            raise RejectedDraft("the graph has no output, or bodies, sequences and the like")
        planted = plant_sizes(scope, rng, rng.choice(_PLANTED))
        base = Base(scope, list(dict.fromkeys([*outputs, *planted])))
        found = search(base, rng, 2 if rng.random() < _TWO_SYMBOLS else 1)
        plan = loosened(base, found, rng)
        if plan != found.plan:
            found = replace(found, plan=plan, generic=tuple(base.replay(plan, sizes) for sizes in GENERIC))
        made = symbolic(base, found, rng, self._barred())
        admitted = _admitted(base, found, made, rng)
        check(made.model)
        return _case(base, found.plan, made, admitted, recipe | {"producer": self.spec}, rng)


def _admitted(base: Base, found: FoundSymbols, made: Symbolic, rng: random.Random) -> list[_Sized]:
    """Return at least two sizes at which the program is valid. Raises RejectedDraft when there are none."""
    if any(contradicts(made, known, sizes) for known, sizes in zip(found.generic, GENERIC, strict=True)):
        raise RejectedDraft("inference contradicts the graph")
    admitted = []
    empty = rng.random() < _EMPTY
    for sizes in candidates(rng, found.original, SIZES):
        if 0 in sizes.values() and not empty:
            continue
        with suppress(ReplayError):
            known = base.replay(found.plan, sizes)
            require_same_kind(base, found.generic[0], known)
            if not contradicts(made, known, sizes):
                admitted.append(_Sized(sizes, known))
        if len(admitted) == _MOST_FEEDS:
            break
    if len(admitted) < 2:
        raise RejectedDraft("fewer than two sizes are valid")
    return admitted


def _case(
    base: Base,
    plan: SizePlan,
    made: Symbolic,
    admitted: Sequence[_Sized],
    recipe: Mapping[str, Any],
    rng: random.Random,
) -> Case:
    names = [info.name for info in made.model.graph.inputs]
    chosen = [*admitted, admitted[0]] if rng.random() < _AGAIN else list(admitted)
    feeds = tuple(_feed(base, plan, names, sized, rng) for sized in chosen)
    exact = [name for name in base.outputs if all(sized.known[name].facts.exact for sized in admitted)]
    more = {"oracle": ORACLE, "sizes": [dict(sized.sizes) for sized in chosen], "computed": list(made.computed)}
    return Case(to_program(made.model, exact), feeds, {**recipe, **more})


def _feed(base: Base, plan: SizePlan, names: Sequence[str], sized: _Sized, rng: random.Random) -> Feed:
    feed = []
    for name in names:
        value = fed(base, plan, name, sized.sizes)
        if value is None:
            operand = sized.known[name]
            value = Tensor(operand.dtype, draw(rng, operand.dtype, operand.shape, base.span(name)))
        feed.append(value)
    return tuple(feed)


DYNAMIC = ProducerKind("dynamic", GeneratorOptions, lambda options, context: DynamicProducer(options, context.support))
"""The kind `dynamic`."""
