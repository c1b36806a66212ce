"""The oracle of special values: NaN, infinities, signed zeros, and numbers at the ends of a type and of an operator.

A violation is an element about which IEEE 754, the operators' pages and the unoptimised build agree, and which the
optimised build computes differently. Whatever the standards leave open is a reading (`readings.FREEDOMS`): where two
readings differ, nothing is said, unless one call of an operator does now this and now that. What both builds do wrong
alike is one where another implementation that is installed takes the place of the unoptimised build. Violations are of
the kind `special`, which no other oracle gives, because compilers
have a policy about them of their own (`[[policy]]` in `known.toml`).
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from miscompile.base.dtypes import DTYPES, is_float
from miscompile.base.errors import ModelError
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome, Values, status_of
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Array, Tensor
from miscompile.core.verdict import Evidence, Holds, Inconclusive, Needs, Verdict, Violated
from miscompile.graph.read import read
from miscompile.ops.special import least_normal
from miscompile.oracles.compare import contradiction
from miscompile.oracles.differential import voting_build
from miscompile.oracles.judge import bad_build
from miscompile.oracles.kinds import NoOptions, OracleContext, OracleKind
from miscompile.oracles.pair import BuildPair, pair_of
from miscompile.oracles.readings import CHOICES, ReadableProgram
from miscompile.targets.known import Policy, known
from miscompile.targets.registry import parse_target, slower_voters_for, voters_for

ORACLE = "special"
"""The name of this oracle in recipes, of its rule and of the kind of its findings."""

SpecialClass = Literal["nan", "infinity", "underflow", "zero-sign", "number", "integer", "range"]
"""NaN where a number is right or the reverse; an infinity likewise; zero likewise; the other zero; a number that is
wrong by far; an integer or a truth value; and whichever of these would be right if no inner result left the range of
its type."""

_OPEN: frozenset[SpecialClass] = frozenset({"range"})
"""Classes that count only for a target whose developers have accepted such a report. Most fusions reassociate, so that
`x * y * z` overflows where it did not, or does not where it did; the latter makes a result better."""

_FAR = 0.01
"""Share of a number by which another one must differ to be wrong, beside what the readings explain."""

_SPREADS = 16.0
"""Multiple of the spread of the readings by which a number must differ to be wrong."""


@dataclass(frozen=True, slots=True)
class Special:
    """Holds the optimised build of programs on special values against the unoptimised one and the readings.

    With `only`, the class of a finding, elements of other classes are no violation. `voters` are specs of the other
    implementations that are asked where both builds contradict the readings.
    """

    target: str
    disabled: frozenset[str] = field(default_factory=frozenset)
    only: str = ""
    voters: tuple[str, ...] = ()

    def plan(self, case: Case, rng: random.Random) -> tuple[Run, ...]:
        """Return the unoptimised and the optimised run."""
        del rng
        return (Run(case, self.target, Build("off")), Run(case, self.target, Build("full", self.disabled)))

    def judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        """Judge the second run by the first one and by the readings of the program."""
        reference, other = outcomes[0], outcomes[1]
        if not isinstance(reference, Values):
            return Inconclusive(f"{status_of(reference)} without optimisation")
        if not isinstance(other, Values):
            return bad_build(runs[1], runs[0], other)
        ports = runs[0].case.program.outputs
        if contradiction(ports, reference) or contradiction(ports, other):
            return Inconclusive("undeclared types")  # other oracles judge types
        if other.results is not reference.results and _differing(reference, other):
            return _judge_elements(runs, reference, other, self.only)
        return self._shared(runs, outcomes, other) if self.voters else Holds()

    def _shared(self, runs: Sequence[Run], outcomes: Sequence[Outcome], other: Values) -> Verdict:
        """Judge what both builds compute alike by the readings, and by another implementation that agrees with them.

        Only of programs of one call, because what a library rounds to zero there, another call may turn into
        anything. The sign of a zero is left out. The first round computes one reading; the others follow where the
        builds contradict it.
        """
        case, answers = runs[0].case, list(zip(runs[2:], outcomes[2:], strict=True))
        if not answers:
            written = _as_written(case)
            if written is None or contradiction(case.program.outputs, written) or not _differing(written, other):
                return Holds()
            if not isinstance(_judge_elements(runs, written, other, self.only, shared=True), Violated):
                return Holds()
            return Needs(tuple(Run(case, name, voting_build(name), "judge") for name in self.voters))
        for run, outcome in answers:
            if isinstance(outcome, Values) and not contradiction(case.program.outputs, outcome):
                verdict = _judge_elements((run, runs[1]), outcome, other, self.only, shared=True)
                if isinstance(verdict, Violated):
                    return verdict
        return Holds("no other implementation contradicts both builds")


@dataclass(frozen=True, slots=True)
class _Element:
    """An element that differs, by feed, output and flat place, with what it is and what it should be.

    `mixed` tells that the call drops some NaN and keeps others.
    """

    feed: int
    output: int
    place: int
    kind: SpecialClass
    want: float
    got: float
    mixed: bool


def _differing(reference: Values, other: Values) -> list[tuple[int, int]]:
    """Return feeds and outputs that have elements of another class, or far apart."""
    return [
        (feed, output)
        for feed, (expected, actual) in enumerate(zip(reference.results, other.results, strict=True))
        for output, (want, got) in enumerate(zip(expected, actual, strict=True))
        if want is not None and got is not None and not want.same(got) and _unlike(want, want, got).any()
    ]


def _as_written(case: Case) -> Values | None:
    """Return the results of a program of one call as it is written; None for other programs, and where the reference
    implementation has none."""
    names = [port.name for port in case.program.inputs]
    try:
        program = ReadableProgram(read(case.program.payload))
        if program.calls != 1:
            return None
        found = [program.as_written(dict(zip(names, feed, strict=True))) for feed in case.feeds]
    except ModelError:
        return None
    return Values(tuple(map(tuple, found)))


def _judge_elements(
    runs: Sequence[Run], reference: Values, other: Values, only: str, *, shared: bool = False
) -> Verdict:
    case = runs[0].case
    names = [port.name for port in case.program.inputs]
    free, declined = False, ""
    try:
        program = ReadableProgram(read(case.program.payload))
        for feed in dict.fromkeys(feed for feed, _ in _differing(reference, other)):
            fed = dict(zip(names, case.feeds[feed], strict=True))
            for element in _wrong(feed, program, fed, reference, other):
                if only not in ("", element.kind) or (shared and element.kind == "zero-sign"):
                    continue
                policy = policy_of(runs[1].target, element.kind, [node.op for node in program.model.graph.nodes])
                if policy is None and element.kind in _OPEN:
                    continue
                if policy is None or policy.status == "accepted":
                    return _violated(runs, element, policy)
                declined = f"declined by the compiler: {element.kind}"
            free = True
    except ModelError as error:
        return Inconclusive("nothing is specified about this program", str(error))
    return Holds(declined or ("the standards leave it open" if free else ""))


def _wrong(
    feed: int, program: ReadableProgram, fed: Mapping[str, Tensor], reference: Values, other: Values
) -> Sequence[_Element]:
    """Return the wrong elements of a feed, of each output the first one of each class. Raises UnreadableError."""
    readings = program.readings(fed)
    found: dict[tuple[int, SpecialClass], _Element] = {}
    for output, (want, got) in enumerate(zip(reference.results[feed], other.results[feed], strict=True)):
        if want is None or got is None or want.same(got):
            continue
        named = {name: Tensor(want.dtype, _stored(values[output], want.dtype)) for name, values in readings.items()}
        base, *others = named.values()
        if base.shape != want.shape:
            continue
        spread = _spread(base, others)
        agreed = ~_unlike(base, base, want, spread)
        for reading in others:
            agreed &= ~_unlike(base, base, reading, spread)
        wrong = (agreed & _unlike(base, base, got, spread)) | _never_finite(named, want, got)
        mixed = _loses_some_nan(program, named, want, got)
        wrong |= mixed
        if not wrong.any():
            continue
        unbounded = program.unbounded(fed)
        ranged = _as_unbounded(base, spread, None if unbounded is None else unbounded[output], got)
        for place in np.flatnonzero(wrong):
            expected, actual = want.numbers().flat[place], got.numbers().flat[place]
            kind = "range" if ranged.flat[place] else _class_of(want.dtype, expected, actual)
            element = _Element(feed, output, int(place), kind, float(expected), float(actual), bool(mixed.flat[place]))
            found.setdefault((output, kind), element)
    return tuple(found.values())


def _never_finite(readings: Mapping[str, Tensor], want: Tensor, got: Tensor) -> Array:
    """Tell where a number stands that no reading has: each is NaN or infinite, and so is the unoptimised build.

    Of the readings only those may differ that change numbers a little (`exp(100) * exp(-100)` is NaN where subnormal
    numbers are zero, and else infinite). Where a single node may choose, a mixture of choices may be a number.
    """
    if not is_float(want.dtype):
        return np.zeros(want.shape, bool)
    base = readings["as written"]
    found = ~np.isfinite(want.numbers()) & np.isfinite(got.numbers())
    for name, reading in readings.items():
        found &= ~np.isfinite(reading.numbers())
        if name in CHOICES:
            found &= ~_unlike(base, base, reading)
    return np.asarray(found)


def _loses_some_nan(program: ReadableProgram, readings: Mapping[str, Tensor], want: Tensor, got: Tensor) -> Array:
    """Tell where `got` has lost a NaN although the only call of an operator keeps others, and `want` keeps all.

    ONNX does not say whether a maximum drops NaN, but an operator does the one or the other.
    """
    base, dropping = readings["as written"], [readings[name] for name in ("low", "high") if name in readings]
    if not is_float(base.dtype) or not dropping or program.calls != 1:
        return np.zeros(base.shape, bool)
    numbers = [one.numbers() for one in dropping]
    alone = (np.isneginf(numbers).any(axis=0)) & (np.isposinf(numbers).any(axis=0))  # no operand is a number
    free = np.isnan(base.numbers()) & ~np.isnan(numbers).any(axis=0) & ~alone
    lost = free & ~np.isnan(got.numbers())
    if not np.isnan(want.numbers())[free].all() or (lost == free).all():
        return np.zeros(base.shape, bool)
    return np.asarray(lost)


def _as_unbounded(base: Tensor, spread: Array | None, unbounded: Array | None, got: Tensor) -> Array:
    """Tell which elements are those that the program has only if no inner result leaves the range of its type."""
    if unbounded is None or unbounded.shape != base.shape or not is_float(base.dtype):
        return np.zeros(base.shape, bool)
    free = Tensor(base.dtype, _stored(unbounded, base.dtype))
    return ~_unlike(base, free, got, spread) & _unlike(base, free, base, spread)


def _spread(base: Tensor, others: Sequence[Tensor]) -> Array | None:
    """Return how far apart the readings of finite elements are."""
    if not is_float(base.dtype):
        return None
    with np.errstate(all="ignore"):
        gaps = [np.abs(one.numbers().astype(np.float64) - base.numbers().astype(np.float64)) for one in others]
    found: Array = np.nanmax([np.where(np.isfinite(gap), gap, 0.0) for gap in (np.zeros(base.shape), *gaps)], axis=0)
    return found


def _unlike(base: Tensor, left: Tensor, right: Tensor, spread: Array | None = None) -> Array:
    """Tell for each element whether two tensors have it in different classes, or far apart."""
    a, b = left.numbers(), right.numbers()
    if not is_float(base.dtype):
        return np.asarray(a != b)
    a, b = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        both = np.isfinite(a) & np.isfinite(b)
        allowed = _FAR * np.maximum(np.abs(a), np.abs(b)) + 2 * least_normal(base.dtype)
        far = np.abs(a - b) > allowed + _SPREADS * (0.0 if spread is None else spread)
        signs = (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
        alike = (np.isnan(a) & np.isnan(b)) | (a == b)
    return np.asarray(np.where(both, far | signs, ~alike))


def _class_of(dtype: str, want: Any, got: Any) -> SpecialClass:  # noqa: ANN401 - a number of numpy
    if not is_float(dtype):
        return "integer"
    if np.isnan(want) != np.isnan(got):
        return "nan"
    if np.isinf(want) or np.isinf(got):
        return "infinity"
    if want == 0 and got == 0:
        return "zero-sign"
    return "underflow" if want == 0 or got == 0 else "number"


def _stored(values: Array, dtype: str) -> Array:
    return values.view(np.uint16) if dtype == "bfloat16" else values.astype(DTYPES[dtype].storage)


def _violated(runs: Sequence[Run], element: _Element, policy: Policy | None) -> Violated:
    port, against = runs[0].case.program.outputs[element.output], runs[0].target
    other = "the unoptimised build" if against == runs[1].target else parse_target(against).about.title
    one = f"output '{port.name}': element {element.place} is {element.got!r} instead of {element.want!r}"
    why = f", as IEEE 754, the operators' pages and {other} have it"
    if element.mixed:
        why = f": the operator drops some NaN and keeps others, where {other} keeps all"
    message = one + why
    stated = {"status": "undecided"} if policy is None else {"status": policy.status, "link": policy.link}
    details = {
        "feed": element.feed, "output": element.output, "element": element.place, "special": element.kind,
        "policy": stated,
    }  # fmt: skip
    return Violated(Evidence("special", ORACLE, message, runs[1], runs[0], port.name, details))


def policy_of(target: str, kind: SpecialClass, operators: Sequence[str]) -> Policy | None:
    """Return what the developers of a target have said about violations of a class, None where they have not."""
    return known(parse_target(target).about.name).policy(kind, operators)


def _hold(options: NoOptions, evidence: Evidence, context: OracleContext, facts: Mapping[str, Any]) -> BuildPair:
    """Return the unoptimised and the faulty build, judged as this oracle judges elements of the class of `evidence`."""
    del options, facts
    judge = Special(evidence.faulty.target, only=str(evidence.details.get("special", "")))
    return pair_of(evidence, context.rule, judged_by=judge)


def _make(options: NoOptions, context: OracleContext) -> Special:
    del options
    target = context.target
    lowered = parse_target(target).about.lowered
    voters = () if lowered else (*voters_for(target), *slower_voters_for(target))
    return Special(target, disabled=context.off(target), voters=voters)


KIND = OracleKind(ORACLE, "results on NaN, infinities, signed zeros and the ends of types", _hold, _make)
