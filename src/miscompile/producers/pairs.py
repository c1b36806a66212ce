"""The sweep of pairs: every operator that reads a result of every other one, in programs of these two operators.

Neighbours are what fusions and rewritings match, so a pair is the least program that can show a wrong one. A pair is
possible when the element type of a result of the first operator is one that the second takes as its main operand. The
list of pairs is fixed: all pairs come once before any comes a second time, and the campaign ends after the last one.
The draw of a pair is the one of a few drafts that has the most unseen combinations of features.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from miscompile.base.dtypes import PLAIN
from miscompile.base.errors import RejectedDraft, UsageError
from miscompile.base.rng import stream
from miscompile.base.specs import print_spec
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome
from miscompile.core.verdict import Verdict
from miscompile.ops.registry import ALIASES, dtypes_of, schema, specs, version_of
from miscompile.ops.spec import Operand, OperatorLimits, Shape
from miscompile.ops.support import Support
from miscompile.ops.values import Style
from miscompile.producers.finish import finish, leaves
from miscompile.producers.kinds import ProducerKind
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.scope import Scope
from miscompile.producers.sites import ScopeSite, insert
from miscompile.producers.sweep import CONSTANTS, PINNED, Single, features

ROUNDS = 2
"""How often a pair is drawn."""

_DRAFTS = 3
_PATIENCE = 120
_OTHER_OPERAND = _PATIENCE * 3 // 4
"""Attempts after which the second operator may read the first one's result in another operand than the main one."""

_REUSE = 0.15
_SPAN = 64.0
"""Bound of the range in which the first operator's operands are drawn where the second asks for a range."""

_ORDER = "pairs"
"""Key of the stream that shuffles the pairs, the same in every campaign: a sweep that is stopped early has then met
operators of all families."""

Link = tuple[int, str]
"""An opset and the element type of a value between the two operators."""


@dataclass(frozen=True, slots=True)
class TwoCalls:
    """A program of two operators, of which the second reads a result of the first."""

    first: Single
    second: Single

    @property
    def places(self) -> list[int]:
        """The operands of the second operator that are results of the first."""
        made = {result.name for result in self.first.results}
        inputs = self.second.call.inputs
        return [place for place, operand in enumerate(inputs) if operand is not None and operand.name in made]

    def features(self) -> Iterator[str]:
        """Yield the features of both calls, and which operands of the second are results of the first."""
        yield from (f"first {feature}" for feature in features(self.first))
        yield from (f"second {feature}" for feature in features(self.second))
        yield from (f"link{place}" for place in self.places)


@dataclass(slots=True)
class _Wish:
    """The ranks and the range that the second operator asked of its operand when it did not take the one it was given.

    The next attempt draws the first operator accordingly, because few results have such ranks and ranges by chance.
    """

    ranks: tuple[int, int] | None = None
    within: tuple[float, float] | None = None

    @property
    def span(self) -> tuple[float, float] | None:
        """The range wished for, without numbers that are so large that the first operator could overflow."""
        lo, hi = self.within or (_SPAN, -_SPAN)
        lo, hi = max(lo, -_SPAN), min(hi, _SPAN)
        return (lo, hi) if lo < hi else None

    def limits(self, plain: OperatorLimits) -> OperatorLimits:
        """Return the limits with the ranks wished for, as far as they allow these."""
        least, most = self.ranks or (0, plain.max_rank)
        least, most = max(least, plain.min_rank), min(most, plain.max_rank)
        return replace(plain, min_rank=least, max_rank=most) if least <= most else plain


class _FirstSite(ScopeSite):
    """The site of the first operator, whose operands are drawn from `span` where the operator takes that range."""

    def __init__(self, scope: Scope, dtype: str, span: tuple[float, float] | None) -> None:
        constants, pinned = scope.rng.choice(CONSTANTS), scope.rng.choice(PINNED)
        super().__init__(scope, dtype, reuse=0.0, constants=constants, pinned=pinned)
        self._span = span

    def _create(self, dtype: str, shape: Shape, within: tuple[float, float] | None, *, constant: float) -> Operand:
        span = self._span
        if span is not None and dtype == self.dtype:
            lo, hi = within or span
            lo, hi = max(lo, span[0]), min(hi, span[1])
            within = (lo, hi) if lo <= hi else within
        return super()._create(dtype, shape, within, constant=constant)


class _SecondSite(ScopeSite):
    """The site of the second operator: the first operand of the right type, after `skip` others, is `link`.

    No guard goes between the two operators, which would not be neighbours then. `wish` keeps what was asked of an
    operand that `link` is not.
    """

    def __init__(self, scope: Scope, link: Operand, skip: int, wish: _Wish) -> None:
        constants, pinned = scope.rng.choice(CONSTANTS), scope.rng.choice(PINNED)
        super().__init__(scope, link.dtype, reuse=_REUSE, constants=constants, pinned=pinned)
        self._link, self._skip, self._wish = link, skip, wish
        self._read = False

    def operand(
        self,
        dtype: str | None = None,
        *,
        shape: Shape | None = None,
        ranks: tuple[int, int] | None = None,
        within: tuple[float, float] | None = None,
        fits: Callable[[Shape], bool] | None = None,
        draw: Callable[[], Shape] | None = None,
    ) -> Operand:
        """Select or create a value as any site does. See `Site.operand`."""
        asked = not self._read and not self._skip and (dtype or self.dtype) == self._link.dtype
        found = super().operand(dtype, shape=shape, ranks=ranks, within=within, fits=fits, draw=draw)
        if asked and not self._read:
            self._wish.ranks = ranks if shape is None else (len(shape), len(shape))
            self._wish.within = within
            raise RejectedDraft("the second operator takes no such operand")
        return found

    def _select(
        self, dtype: str, serves: Callable[[Shape], bool], within: tuple[float, float] | None
    ) -> Operand | None:
        link = self._link
        if not self._read and dtype == link.dtype:
            if self._skip:
                self._skip -= 1
                return None
            if serves(link.shape) and (within is None or link.facts.inside(*within)):
                self._read = True
                self._taken.add(link.name)
                return link
        return super()._select(dtype, serves, within)

    def _guarded(self, operand: Operand | None, within: tuple[float, float] | None) -> Operand | None:
        return None


def draft_pair(
    scope: Scope, first: str, second: str, dtype: str, takes: frozenset[str], skip: int, wish: _Wish
) -> TwoCalls:
    """Draw a program of two operators in an empty scope, the first of which has the main type `dtype`.

    `takes` are the types of the second one's main operand. `skip` is the number of its operands of the right type that
    are not the first one's result. Raises RejectedDraft when a sampler or the target rejects the draft, or when the
    second operator does not read a result of the first; `wish` then holds what it asks for.
    """
    call, results = insert(scope, first, _FirstSite(scope, dtype, wish.span))
    links = [result for result in results if result.dtype in takes]
    if not links:
        raise RejectedDraft(f"{second} takes no result of {first}")
    link = scope.rng.choice(links)
    reader, ends = insert(scope, second, _SecondSite(scope, link, skip, wish))
    if all(operand is None or operand.name != link.name for operand in reader.inputs):
        raise RejectedDraft(f"{second} does not read the result of {first}")
    return TwoCalls(Single(call, results, scope), Single(reader, ends, scope))


@dataclass(frozen=True, slots=True)
class _Types:
    """The types of one operator, each with an opset: `main` are those of its main operand or, without one, main result.

    `same` are those of them that some result has as well, `other` the types of results that do not depend on them.
    `reads`: it has a main operand, so it can be the second of a pair.
    """

    main: frozenset[Link]
    same: frozenset[Link]
    other: frozenset[Link]
    reads: bool

    def fitting(self, opset: int, takes: frozenset[str]) -> list[str]:
        """Return the main types with which some result may have one of the types that another operator `takes`."""
        any_main = any((opset, dtype) in self.other for dtype in takes)
        fits = self.main if any_main else self.same
        return sorted(kind for at, kind in fits if at == opset and (any_main or kind in takes))


class Pairs:
    """Producer of the cases of all pairs. `tasks` are the names of its cases, in order; `begin` chooses one."""

    def __init__(self, options: GeneratorOptions, support: Support) -> None:
        self.options = replace(options, nodes=2, spread=0.0, large=0.0)
        self.support = support
        self.spec = print_spec("pairs", self.options)
        self._limits = OperatorLimits(options.max_rank, options.max_dim, options.max_elements, zero_size=0.03)
        self._types = {op: self._types_of(op) for op in specs() if not options.ops or op in options.ops}
        pairs = [(one, other) for one in self._types for other in self._types if self._links(one, other)]
        if not pairs:
            raise UsageError("no pair of operators is left: the target takes none of those asked for (--ops, --dtypes)")
        stream(0, _ORDER).shuffle(pairs)
        self.tasks = tuple(f"{one} {other} {turn}" for turn in range(ROUNDS) for one, other in pairs)
        self._task = self.tasks[0]
        self._seen: dict[str, set[int]] = {}
        self._numbers: dict[str, int] = {}

    def begin(self, task: str) -> None:
        """Let the next cases be those of `task`."""
        self._task = task

    def propose(self, rng: random.Random) -> Case:
        """Return a case of the task, in its newest form drawn. Raises RejectedDraft when the pair cannot be drawn."""
        first, second, turn = self._task.split(" ")
        pair = self._newest(rng, first, second)
        scope, options = pair.second.scope, self.options
        ends = leaves(scope)
        read = [one.name for one in pair.first.results if one.name not in ends]
        inner = [name for name in read if rng.random() < options.inner_outputs]
        recipe = {"producer": self.spec, "opset": scope.opset, "pair": [first, second], "turn": int(turn)}
        return finish(scope, [*inner, *ends], options.feeds, recipe)

    def learn(self, case: Case, outcomes: Sequence[Outcome], verdict: Verdict) -> None:
        """Do nothing, because the order depends on the list and not on outcomes."""

    def _newest(self, rng: random.Random, first: str, second: str) -> TwoCalls:
        """Return the one of a few drafts that has the most combinations of features that are new.

        Those of all earlier programs with the same second operator are known, and so is the first draw of the pair.
        """
        seen = self._seen.setdefault(second, set())
        drafts = [(len(found - seen), pair, found) for pair, found in self._drafts(rng, first, second)]
        if not drafts:
            raise RejectedDraft(f"{first} and {second} make no program")
        _, pair, found = max(drafts, key=lambda draft: draft[0])
        seen |= found
        return pair

    def _drafts(self, rng: random.Random, first: str, second: str) -> Iterator[tuple[TwoCalls, set[int]]]:
        """Yield a few drafts of a pair with their combinations of features; fewer where it is hard to draw."""
        options, wish, drafts = self.options, _Wish(), 0
        links = self._links(first, second)
        opsets = sorted({opset for opset, _ in links})
        for attempt in range(_PATIENCE):
            style = Style(rng.random() < options.integral, rng.random() < options.full)
            opset = options.draw_opset(rng, opsets)
            limits = wish.limits(options.draw_limits(rng, self._limits))
            scope = Scope(rng, opset, limits, style, self.support)
            try:
                pair = self._draft(scope, first, second, attempt, wish)
            except RejectedDraft:
                continue
            yield pair, self._combined(pair)
            drafts, wish = drafts + 1, _Wish()
            if drafts == _DRAFTS:
                return

    def _draft(self, scope: Scope, first: str, second: str, attempt: int, wish: _Wish) -> TwoCalls:
        """Draw a pair; the first attempts insist that the second operator reads the result as its main operand."""
        main, other = specs()[second].main, attempt >= _OTHER_OPERAND
        takes = frozenset(dtype for opset, dtype in self._types[second].main if opset == scope.opset)
        dtype = scope.rng.choice(self._types[first].fitting(scope.opset, takes))
        skip = attempt % 3 if main or other else 0
        pair = draft_pair(scope, first, second, dtype, takes, skip, wish)
        if not other and main not in pair.places:
            raise RejectedDraft(f"{second} reads the result of {first} in another operand")
        return pair

    def _combined(self, pair: TwoCalls) -> set[int]:
        """Return the combinations of two features of a pair, as numbers."""
        known = self._numbers
        numbers = sorted({known.setdefault(feature, len(known)) for feature in pair.features()})
        return {one << 24 | other for one, other in combinations(numbers, 2)}

    def _links(self, first: str, second: str) -> frozenset[Link]:
        """Return the links over which the second operator can read a result of the first."""
        one, other = self._types[first], self._types[second]
        return (one.same | one.other) & other.main if other.reads else frozenset()

    def _types_of(self, op: str) -> _Types:
        """Return the types of an operator that options, schema and support allow."""
        spec, main, same, other = specs()[op], set[Link](), set[Link](), set[Link]()
        for opset in self.options.opsets:
            own = self._offered(op, opset, spec.main, dtypes_of(op, opset))
            main |= {(opset, dtype) for dtype in own}
            for place, variable, dtypes in _results_of(op, opset) if own else ():
                given = self._offered(op, opset, ~place, dtypes)
                if variable == _main_variable(op, opset):
                    same |= {(opset, dtype) for dtype in given & own}
                else:
                    other |= {(opset, dtype) for dtype in given}
        return _Types(frozenset(main), frozenset(same), frozenset(other), spec.main >= 0)

    def _offered(self, op: str, opset: int, place: int, dtypes: Iterable[str]) -> set[str]:
        """Return the `dtypes` that the options and the target allow for the operand `place`, or the result `~place`."""
        wanted, offers = self.options.dtypes or PLAIN, self.support.offers
        return {one for one in dtypes if one in wanted and offers(op, one, version_of(op, opset), place)}


def _main_variable(op: str, opset: int) -> str:
    """Return the type variable of the main operand, or main result, in the schema of an operator."""
    known, place = schema(op, opset), specs()[op].main
    assert known is not None  # the operator has types in this opset
    formals = known.inputs if place >= 0 else known.outputs
    return str(formals[min(place if place >= 0 else ~place, len(formals) - 1)].type_str)


def _results_of(op: str, opset: int) -> Iterator[tuple[int, str, frozenset[str]]]:
    """Yield place, type variable and element types of every result in the schema of an operator."""
    known = schema(op, opset)
    for place, formal in enumerate(known.outputs if known is not None else ()):
        names = (name.removeprefix("tensor(").removesuffix(")") for name in formal.types)
        yield place, str(formal.type_str), frozenset(ALIASES.get(name, name) for name in names)


PAIRS = ProducerKind("pairs", GeneratorOptions, lambda options, context: Pairs(options, context.support), finite=True)
"""The kind `pairs`."""
