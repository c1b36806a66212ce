"""Proofs of rules: what is proved of each, on which types, up to which sizes, and with which exceptions.

A rule is instantiated on all small shapes and parameters up to a bound. Elements that both sides compute by the same
operators from the same operands are equal in every type. What remains are obligations: for integers and truth values
they are proved by the laws of rings or of order, at every width at once, or by the SMT solver at each width; for floats
by the laws of order or the solver, in each format. Evaluation on short floats yields the domain on which the sides
agree bit for bit. A rule that rounds is proved equal in exact arithmetic.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal, get_args

import numpy as np

from miscompile.base.dtypes import DTYPES, FLOATS
from miscompile.base.rng import stream
from miscompile.transforms.rules.certify import described, type_text
from miscompile.transforms.rules.kinds import ELEMENTS, TermType
from miscompile.transforms.rules.proofs.algebra import differ_in_exact_arithmetic, same_normal_form
from miscompile.transforms.rules.proofs.elements import GENERIC, ElementTable, Obligation, obligation
from miscompile.transforms.rules.proofs.floats import Domain, FloatDifference, Points, explore, values_of_elements
from miscompile.transforms.rules.proofs.instances import Enumeration
from miscompile.transforms.rules.proofs.order import equal_by_order
from miscompile.transforms.rules.proofs.selection import equal_in_each_case
from miscompile.transforms.rules.proofs.solver import SolverVerdict, decided, installed
from miscompile.transforms.rules.proofs.symbolic import lifted
from miscompile.transforms.rules.rule import Apply, Bindings, Rule, TermPattern, parts, type_of, variables
from miscompile.transforms.rules.specimens import BROKEN, dtypes_of, truth_values

Status = Literal["proved", "exact on a domain", "tested only", "refuted"]
"""Proved for all values | equal bit for bit but for the exceptions | no proof | there is a counterexample."""

STATUSES: tuple[Status, ...] = get_args(Status)
"""Each weaker than the one before."""

INSTANCES = 100
"""Instances of one element type."""

_INSTANCES_OF_CASTS = 6
_CHECKED_TYPES = 8
EXPLORED = 3
"""Obligations on floats that are evaluated; most rules have no more."""

_ALLOWED: Mapping[str, frozenset[FloatDifference]] = {
    "bits": frozenset(),
    "zero": frozenset({"signed zeros"}),
}
"""The exceptions that a class of exactness allows on floats; a rule that rounds may have all of them."""


@dataclass(slots=True)
class RefutedError(Exception):
    """A counterexample to a rule, in words."""

    reason: str


@dataclass(frozen=True, slots=True)
class RuleProof:
    """What is proved of a rule.

    `integers` (truth values among them) and `floats` are empty where the rule admits no such type. `instances` were
    compared, with ranks and sizes of axes up to `rank` and `size`; `complete` tells whether these are all up to the
    bounds. `methods` are those that proved something. `exceptions` holds the shares of the `points` on floats at
    which the sides differ, by reason. `reason` says why a part is without proof, or gives the counterexample.
    """

    rule: str
    status: Status
    integers: Status | Literal[""]
    floats: Status | Literal[""]
    dtypes: tuple[str, ...]
    methods: tuple[str, ...]
    instances: int
    rank: int
    size: int
    complete: bool
    exceptions: tuple[tuple[FloatDifference, float], ...] = ()
    points: int = 0
    formats: tuple[str, ...] = ()
    reason: str = ""

    @property
    def text(self) -> str:
        """The certificate in words."""
        if self.status == "refuted" or (self.status == "tested only" and not self.integers and not self.floats):
            return f"{self.status}: {self.reason}"
        said = [f"{what} {status}" for what, status in (("integers", self.integers), ("floats", self.floats)) if status]
        if self.exceptions:
            shares = ", ".join(f"{reason} {_percent(share)}" for reason, share in self.exceptions)
            said.append(f"exact except on {shares} of {self.points} points")
        elif self.points:
            said.append(f"exact on all {self.points} points")
        return "; ".join([*said, self.reason] if self.reason else said)


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"


@dataclass(slots=True)
class _Work:
    """What instantiation found: obligations, each with the types it is about and the first instance that has it."""

    rule: Rule
    explored: int
    obligations: dict[tuple[Obligation, tuple[str, ...]], Bindings] = field(default_factory=dict)
    instances: int = 0
    complete: bool = True
    rank: int = 0
    size: int = 0
    identical: bool = False
    dtypes: set[str] = field(default_factory=set)


def prove(rule: Rule, most: int = INSTANCES, explored: int = EXPLORED) -> RuleProof:
    """Return what can be proved of `rule`, on up to `most` instances of each group of element types.

    On floats, the `explored` smallest obligations are evaluated for the domain. The answer is the same each time: no
    step depends on time or on the state of a random generator.
    """
    work = _Work(rule, explored)
    try:
        _instantiate(work, most)
        if not work.instances:
            return _proof(work, "tested only", "", "", (), Domain(), "no instance of its left side is small enough")
        if not work.identical and not work.obligations:
            return _proof(work, "tested only", "", "", (), Domain(), "no instance of its left side has elements")
        return _discharged(work)
    except RefutedError as found:
        return _proof(work, "refuted", "", "", (), Domain(), found.reason)


def _proof(
    work: _Work,
    status: Status,
    integers: Status | Literal[""],
    floats: Status | Literal[""],
    methods: tuple[str, ...],
    domain: Domain,
    reason: str,
) -> RuleProof:
    shares = tuple((why, domain.differing[why] / domain.points) for why in domain.exceptions)
    return RuleProof(
        work.rule.name, status, integers, floats, tuple(sorted(work.dtypes)), methods, work.instances, work.rank,
        work.size, work.complete, shares, domain.points, tuple(sorted(domain.formats)), reason,
    )  # fmt: skip


# Instances.

_ABOUT_TYPES = re.compile(r"\b(kind|width|holds|digits)\(|'(float|bfloat|int|uint)\d+'|dtype\s*[!=]=")


def _expressions(rule: Rule) -> Iterator[str]:
    for side in (rule.left, rule.right):
        for part in parts(side):
            if isinstance(part, Apply):
                yield from (parameter.text for parameter in part.parameters)
    if rule.where is not None:
        yield rule.where.text
    yield from (argument.text for draw in rule.draws for argument in draw.arguments)
    yield from (value.text for _, value in rule.lets)


def _has(pattern: TermPattern, *ops: str) -> bool:
    return any(isinstance(part, Apply) and part.op in ops for part in parts(pattern))


def _is_about_types(rule: Rule) -> bool:
    casts = _has(rule.left, "Cast") or _has(rule.right, "Cast")
    return casts or any(_ABOUT_TYPES.search(text) for text in _expressions(rule))


def _instantiate(work: _Work, most: int) -> None:
    """Compare all instances. Raises RefutedError where the types differ or an expression fails."""
    rule = work.rule
    dtypes = dtypes_of(rule)
    truth, names = truth_values(rule.left), variables(rule.left)
    if _is_about_types(rule):
        limits = dict(rule.limits)
        own = [("bool",) if n in truth else sorted(limits.get(n, frozenset(ELEMENTS))) for n in names]
        alike = not _has(rule.left, "Cast") or len(names) > 2
        every = [tuple("bool" if n in truth else d for n in names) for d in dtypes] if alike else list(product(*own))
        for chosen in every:
            _compare(work, dict(zip(names, chosen, strict=True)), (), _INSTANCES_OF_CASTS)
        return
    for together in _groups(rule, dtypes):
        given = {name: "bool" if name in truth else together[0] for name in names}
        _compare(work, given, together, most)


def _groups(rule: Rule, dtypes: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the element types that can be treated as one: all, or those of a kind where constants depend on it."""
    if not _has(rule.left, "Constant", "Pad", "Gemm", "BatchNormalization"):
        numbers = tuple(dtype for dtype in dtypes if dtype != "bool")
        return [numbers + tuple(d for d in dtypes if d == "bool")] if dtypes else []
    kinds: dict[str, list[str]] = {}
    for dtype in dtypes:
        kinds.setdefault(DTYPES[dtype].kind, []).append(dtype)
    return [tuple(group) for group in kinds.values()]


def _compare(work: _Work, given: Mapping[str, str], together: tuple[str, ...], most: int) -> None:
    """Compare the instances of one group of types; `together` is empty where each type is on its own."""
    rule = work.rule
    rng = stream(0, "proof", rule.name, *given.values())
    enumeration = Enumeration(rule, given, most, rng)
    found: list[Bindings] = []
    try:
        for number, environment in enumerate(enumeration):
            found.append(environment)
            _compare_types(rule, environment)
            for other in together[1:] if number < _CHECKED_TYPES else ():
                _compare_types(rule, {name: _retyped(v, together[0], other) for name, v in environment.items()})
    except BROKEN as error:
        where = described(found[-1]) if found else ""
        raise RefutedError(f"{type(error).__name__} ({error}) in an expression{where}") from error
    for environment in found:
        _compare_elements(work, environment, together)
    work.complete &= enumeration.complete
    work.dtypes.update(together or (given.values() if work.instances else ()))


def _retyped(value: Any, old: str, new: str) -> Any:  # noqa: ANN401 - a type, or a parameter of any kind
    """Return a bound value with another element type."""
    if isinstance(value, TermType):
        return TermType(new if value.dtype == old else value.dtype, value.shape)
    if isinstance(value, tuple) and value[:1] == (old,):
        return (new, *value[1:])
    return new if value == old else value


def _compare_types(rule: Rule, environment: Bindings) -> None:
    expected, found = type_of(rule.left, environment), type_of(rule.right, environment)
    if expected is not None and expected != found:
        what = "is ill-formed" if found is None else f"has type {type_text(found)}"
        raise RefutedError(
            f"the right side {what}, the left side has type {type_text(expected)}{described(environment)}"
        )


def _compare_elements(work: _Work, environment: Bindings, together: tuple[str, ...]) -> None:
    rule, table = work.rule, ElementTable()
    sorts = {together[0]: GENERIC} if together and together[0] != "bool" else {}
    arrays = {}
    for name in variables(rule.left):
        dtype, shape = environment[name]
        count = int(np.prod(shape, dtype=np.int64))
        sort = sorts.get(dtype, dtype)
        numbers = [table.add("Variable", sort, (), (name, place)) for place in range(count)]
        arrays[name] = np.array(numbers, np.int64).reshape(shape)
        work.rank, work.size = max(work.rank, len(shape)), max(work.size, *shape, 0)
    left = lifted(rule.left, environment, arrays, table, sorts)
    right = lifted(rule.right, environment, arrays, table, sorts)
    work.instances += 1
    pairs = set(zip(left.reshape(-1).tolist(), right.reshape(-1).tolist(), strict=True))
    work.identical |= any(a == b for a, b in pairs)
    for first, second in sorted(pairs):
        if first != second:
            work.obligations.setdefault((obligation(table, first, second), together), environment)


# Obligations.


@dataclass(slots=True)
class _Tally:
    """The state of the proof: methods used, obligations by what became of them, and the domain on floats."""

    methods: set[str] = field(default_factory=set)
    open_integers: int = 0
    open_floats: int = 0
    unequal: int = 0
    rounded: int = 0
    domain: Domain = field(default_factory=Domain)


def _discharged(work: _Work) -> RuleProof:
    tally = _Tally()
    if work.identical:
        tally.methods.add("identical operations")
    ordered = sorted(work.obligations.items(), key=lambda item: _size(item[0][0]))
    explored = 0
    for (stated, together), environment in ordered:
        if equal_in_each_case(stated):
            tally.methods.add("cases")
            continue
        integers = [dtype for dtype in together if dtype not in FLOATS]
        floats = [dtype for dtype in together if dtype in FLOATS]
        if not together:
            about_floats = any(element.sort in FLOATS for element in stated.elements)
            integers, floats = ([], [""]) if about_floats else ([""], [])
        if integers:
            _on_integers(work, stated, integers, environment, tally)
        if floats:
            _on_floats(work, stated, floats, environment, tally, explored < work.explored)
            explored += 1
    return _concluded(work, tally)


def _size(stated: Obligation) -> tuple[bool, int]:
    """Return a key that puts small obligations first, and those without variables last."""
    return not stated.variables, len(stated.elements)


def _on_integers(work: _Work, stated: Obligation, dtypes: list[str], environment: Bindings, tally: _Tally) -> None:
    """Prove an obligation at every integer type, or count it as open. Raises RefutedError."""
    numeric = [dtype for dtype in dtypes if dtype != "bool"]
    if numeric and same_normal_form(stated, "ring"):
        tally.methods.add("laws of rings")
        dtypes = [dtype for dtype in dtypes if dtype == "bool"]
    elif numeric and equal_by_order(stated, floats=False):
        tally.methods.add("laws of order")
        dtypes = [dtype for dtype in dtypes if dtype == "bool"]
    for dtype in dtypes:
        typed = stated.typed(dtype) if dtype else stated
        verdict = decided(typed, zeros=False)
        if verdict.answer == "refuted" and (reason := counterexample(typed, verdict)):
            raise RefutedError(reason + described(environment))
        if verdict.answer == "proved":
            tally.methods.add("z3")
        else:
            tally.open_integers += 1


def _on_floats(
    work: _Work, stated: Obligation, dtypes: list[str], environment: Bindings, tally: _Tally, wanted: bool
) -> None:
    """Prove an obligation for floats as far as the class of the rule promises, and explore it. Raises RefutedError."""
    rule = work.rule
    proved = False
    if rule.exactness == "rounding":
        proved = same_normal_form(stated, "reals")
        tally.methods.update(["exact arithmetic"] if proved else [])
        tally.rounded += proved
        tally.unequal += not proved
        if not proved and differ_in_exact_arithmetic(stated):
            raise RefutedError(f"the sides differ in exact arithmetic{described(environment)}")
    else:
        proved = _decided_on_floats(rule, stated, dtypes, environment, tally)
        tally.open_floats += not proved
    if not wanted and (proved or rule.exactness == "rounding"):
        return
    own = Domain()
    explore(stated, own)
    _add(tally.domain, own)
    allowed = _ALLOWED.get(rule.exactness)
    wrong = [why for why in own.exceptions if allowed is not None and why not in allowed]
    if wrong:
        raise RefutedError(f"the sides differ on floats: {', '.join(wrong)}{described(environment)}")


def _decided_on_floats(rule: Rule, stated: Obligation, dtypes: list[str], environment: Bindings, tally: _Tally) -> bool:
    """Tell whether an obligation is proved in every format. Raises RefutedError."""
    if rule.exactness == "zero" and equal_by_order(stated, floats=True):
        tally.methods.add("laws of order")
        return True
    proved = True
    for dtype in dtypes:
        typed = stated.typed(dtype) if dtype else stated
        verdict = decided(typed, zeros=rule.exactness == "zero")
        if verdict.answer == "refuted" and (reason := counterexample(typed, verdict)):
            raise RefutedError(reason + described(environment))
        proved &= verdict.answer == "proved"
    if proved:
        tally.methods.add("z3")
    return proved


def _add(domain: Domain, own: Domain) -> None:
    domain.points += own.points
    domain.differing.update(own.differing)
    domain.formats |= own.formats


def counterexample(stated: Obligation, verdict: SolverVerdict) -> str:
    """Return the solver's counterexample in words, or nothing where the language's kernels do not confirm it."""
    sorts = [element.sort for element in stated.variables]
    values = tuple(np.array([v]).astype(ELEMENTS[s]) for v, s in zip(verdict.values, sorts, strict=True))
    found = values_of_elements(stated, Points(ELEMENTS["float32"], values), 1)
    left, right = found[stated.left].reshape(-1)[0], found[stated.right].reshape(-1)[0]
    if left.tobytes() == right.tobytes():
        return ""
    given = ", ".join(f"{s} {v}" for v, s in zip(verdict.values, sorts, strict=True))
    return f"the sides differ for {given}: {left} and {right}"


def _concluded(work: _Work, tally: _Tally) -> RuleProof:
    admitted = work.dtypes
    integers: Status | Literal[""] = ""
    floats: Status | Literal[""] = ""
    reasons = []
    if any(dtype not in FLOATS for dtype in admitted):
        integers = "tested only" if tally.open_integers else "proved"
    if any(dtype in FLOATS for dtype in admitted):
        exact = not (tally.domain.exceptions or tally.open_floats or tally.rounded)
        floats = "tested only" if tally.unequal else "proved" if exact else "exact on a domain"
    if tally.open_integers:
        solver = "z3 left them open" if installed() else "z3 is not installed"
        reasons.append(f"{tally.open_integers} obligations on integers without proof: {solver}")
    if tally.rounded and not tally.unequal:
        reasons.append("equal in exact arithmetic")
    if tally.unequal:
        reasons.append(f"{tally.unequal} obligations not shown equal in exact arithmetic")
    if tally.open_floats:
        reasons.append(f"{tally.open_floats} obligations on floats evaluated, not proved")
    stated: list[Status] = [part for part in (integers, floats) if part]
    status: Status = max(stated, key=STATUSES.index, default="tested only")
    return _proof(work, status, integers, floats, tuple(sorted(tally.methods)), tally.domain, "; ".join(reasons))
