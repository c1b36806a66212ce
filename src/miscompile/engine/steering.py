"""Steering of tests past known bugs: which passes are off in a test, and which drafts are given up before it.

A campaign that switched a pass off for good after its first bug would test less of the compiler with every finding.
Here a pass is off in single tests only. A test is *open* with probability `OPEN`: all its passes are on. So every pass
is on in at least that share of the tests. In any other test the passes are off whose known bug the program contains,
and each pass whose bugs are too costly is off with a probability that rises with their cost.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from miscompile.base.errors import ModelError
from miscompile.core.case import Case, Program
from miscompile.core.finding import Signature
from miscompile.core.outcome import Outcome
from miscompile.core.verdict import Evidence
from miscompile.findings.encode import signature_from
from miscompile.findings.folder import Stored
from miscompile.graph.read import read
from miscompile.targets.about import About
from miscompile.triage.bisect import expand
from miscompile.triage.outline import outlined
from miscompile.triage.predicate import BugPredicate, Described, described, predicate_from

OPEN = 0.25
"""Share of the tests in which all passes are on, whatever is known about their bugs."""

THROUGH = 0.125
"""Share of the drafts with a known bug of no pass that are tested nevertheless, because other bugs may hide behind."""

ATTEMPTS = 4
"""Drafts that are drawn for one test at most; the last one is tested, whatever it contains."""

WORTH = 0.05
"""Cost of a pass's known bugs, in tests for each test, up to which the pass is always on."""

SEARCH_COST = 100.0
"""Cost of a violation whose culprits are searched for, in tests; a recognised one costs one test."""

VARIANTS = "variants"
"""The fact of a finding with the predicates of other programs that show the same bug."""

MOST_VARIANTS = 16
"""Predicates that a finding takes over from others at most."""

LEAST_ASKED = 1 / 16
"""Least share of the unrecognised violations with the signature of a known bug that are triaged."""

ALIKE = 1 / 8
"""Share of the violations of programs with a known bug's operators that are triaged, beside the share above."""

LEAST_TESTS = 200
"""Tests that are taken for granted when a rate is estimated, so that one early violation does not decide."""


@dataclass(frozen=True, slots=True)
class SteeredBug:
    """A bug that tests steer past: the predicate with the signature of its finding."""

    predicate: BugPredicate
    signature: Signature
    _operators: Mapping[bytes, int] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_operators", self.predicate.operators)

    def has_operators(self, program: "_Operators") -> bool:
        """Tell whether a program has as many of each operator as the pattern; takes microseconds."""
        return all(program[one] >= number for one, number in self._operators.items())

    def as_json(self) -> dict[str, Any]:
        """Return both as JSON values, for a lane."""
        return {"predicate": self.predicate.as_json(), "signature": asdict(self.signature)}


def steered_bug_from(data: Mapping[str, Any]) -> SteeredBug:
    """Read back what `SteeredBug.as_json` returned. Raises StoreError for a damaged predicate."""
    return SteeredBug(predicate_from(data["predicate"]), signature_from(data["signature"]))


def steered_bugs_of(stored: Stored) -> tuple[SteeredBug, ...]:
    """Return the bug of a triaged finding once for each of its predicates; nothing for a finding without any.

    Raises StoreError for a damaged predicate.
    """
    if stored.status not in ("confirmed", "known"):
        return ()
    facts, signature = stored.finding.facts, stored.finding.property.signature
    found = [facts["predicate"]] if isinstance(facts.get("predicate"), Mapping) else []
    return tuple(SteeredBug(predicate_from(one), signature) for one in [*found, *facts.get(VARIANTS, ())])


def with_variant(owner: Stored, merged: Stored) -> Stored:
    """Return a finding with the predicate of another one that has its signature: both programs show the bug.

    The finding comes back unchanged when it has `MOST_VARIANTS` already, or nothing new is to be learnt.
    """
    facts, fresh = owner.finding.facts, merged.finding.facts.get("predicate")
    known = [facts.get("predicate"), *facts.get(VARIANTS, ())]
    if merged.status == "unconfirmed" or fresh is None or fresh in known or len(known) > MOST_VARIANTS:
        return owner
    facts = {**facts, VARIANTS: [*facts.get(VARIANTS, ()), fresh]}
    return replace(owner, finding=replace(owner.finding, facts=facts))


@dataclass(frozen=True, slots=True)
class Course:
    """The decision about one draft: `disabled` passes by target, or `given_up` because of a bug of no pass."""

    disabled: Mapping[str, frozenset[str]]
    given_up: bool = False


@dataclass(slots=True)
class Steering:
    """The known bugs of a lane's targets, which `abouts` describe. With `enabled` False no test is steered."""

    abouts: Mapping[str, About]
    enabled: bool = True
    known: list[SteeredBug] = field(default_factory=list)
    costs: dict[str, dict[str, float]] = field(default_factory=dict)
    """By target: the cost of the known bugs of each pass so far, in tests."""
    tests: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By target and pass with known bugs: tests in which it was on."""

    def learn(self, bugs: Iterable[SteeredBug]) -> None:
        """Add known bugs; one that is known already is skipped."""
        for bug in bugs:
            if bug not in self.known:
                self.known.append(bug)

    def recognise(self, case: Case, evidence: Evidence, outcome: Outcome | None) -> SteeredBug | None:
        """Return the known bug that a violation is, None for a new one; `outcome` is that of the faulty run."""
        program = _Contents(case)
        for bug in self.known:
            if bug.predicate.explains(evidence, outcome) and program.include(bug):
                return bug
        return None

    def may_be_another(self, case: Case, signature: Signature, rng: random.Random) -> bool:
        """Tell whether triage should decide if an unrecognised violation is another bug than the known one.

        Both have this signature. With each predicate that the known bug has gained, because triage merged such a
        violation into it, the next one is half as likely to be asked about. A program with all operators of the known
        bug is one eighth as likely as others, because two bugs of one signature differ in their operators. Without
        culprits the signature is a message, which is final.
        """
        known = [bug for bug in self.known if bug.signature == signature]
        if not signature.culprits or not known:
            return False
        chance = max(0.5 ** (len(known) - 1), LEAST_ASKED)
        operators = _Operators(case.program)
        if any(bug.has_operators(operators) for bug in known):
            chance *= ALIKE
        return rng.random() < chance

    def course(self, case: Case, rng: random.Random) -> Course:
        """Decide about a draft. Deterministic for a given `rng` and the same knowledge."""
        if not self.enabled:
            return Course({})
        through, is_open = rng.random() < THROUGH, rng.random() < OPEN
        mattering = [bug for bug in self.known if not (is_open if bug.predicate.passes else through)]
        contained = self._contained(case, mattering)
        if not through and any(not bug.passes for bug in contained):
            return Course({}, given_up=True)
        if is_open:
            return Course({})
        disabled = {target: self._off(target, contained, rng) for target in self.abouts}
        return Course({target: names for target, names in disabled.items() if names})

    def count(self, disabled: Mapping[str, frozenset[str]]) -> None:
        """Count a test that ran with the passes `disabled` off."""
        for target, costs in self.costs.items():
            off = disabled.get(target, frozenset())
            for name in costs:
                if name not in off:
                    self.tests[target, name] += 1

    def charge(self, target: str, passes: Iterable[str], cost: float) -> None:
        """Add the cost of a violation, in tests, to the passes that are off when it is to be avoided."""
        for name in self.avoiding(target, passes):
            costs = self.costs.setdefault(target, {})
            costs[name] = costs.get(name, 0.0) + cost

    def avoiding(self, target: str, culprits: Iterable[str]) -> frozenset[str]:
        """Return the passes to switch off against a bug: the last culprit in pipeline order, with its twins.

        Earlier culprits often only enable the last one (constant folding), and many other bugs need them.
        """
        about = self.abouts[target]
        order = {name: place for place, name in enumerate(about.passes)}
        guilty = [name for name in culprits if name in order]
        return expand((max(guilty, key=order.__getitem__),), about.twins) if guilty else frozenset()

    def _off(self, target: str, contained: Iterable[BugPredicate], rng: random.Random) -> frozenset[str]:
        off: set[str] = set()
        for bug in contained:
            if bug.target == target:
                off |= self.avoiding(target, bug.passes)
        for name, cost in sorted(self.costs.get(target, {}).items()):
            rate = cost / (LEAST_TESTS + self.tests[target, name])
            if rng.random() > WORTH / max(rate, WORTH):
                off.add(name)
        return frozenset(off)

    def _contained(self, case: Case, bugs: Iterable[SteeredBug]) -> list[BugPredicate]:
        """Return the predicates whose pattern the draft contains; only plain builds' ones, which any test may have."""
        program, found = _Contents(case), []
        for bug in bugs:
            if not bug.predicate.transform and program.include(bug):
                found.append(bug.predicate)
        return found


class _Operators(dict[bytes, int]):
    """The numbers of operators in a program, by their encoded names, each counted when it is looked up first.

    The rare other bytes of a program that look like the name of an operator count as well.
    """

    def __init__(self, program: Program) -> None:
        super().__init__()
        self._payload = program.payload if program.kind == "onnx" else b""

    def __missing__(self, name: bytes) -> int:
        number = self[name] = self._payload.count(name)
        return number


@dataclass(slots=True)
class _Contents:
    """A case's program, held against predicates in steps, each dearer than the one before.

    A pattern's operators are counted in the serialised program, which takes microseconds. Then all conditions are
    checked but those on types that the program does not declare. Only where these decide, the types are inferred: first
    those of the main graph, which onnx does at once, and those in bodies only where they decide.
    """

    case: Case
    _operators: "_Operators" = field(init=False)
    _forms: list[Described] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._operators = _Operators(self.case.program)

    def include(self, bug: SteeredBug) -> bool:
        """Tell whether the program contains the pattern of `bug`."""
        if not bug.has_operators(self._operators):
            return False
        predicate = bug.predicate
        try:
            for step in range(len(_STEPS)):
                form = self._form(step)
                if not predicate.matches(form):
                    return False
                if predicate.matches(form, surely=True):
                    return True
        except ModelError:
            return False
        return True

    def _form(self, step: int) -> Described:
        while len(self._forms) <= step:
            self._forms.append(_STEPS[len(self._forms)](self.case.program.payload))
        return self._forms[step]


_STEPS: tuple[Callable[[bytes], Described], ...] = (
    outlined,
    lambda payload: outlined(payload, infer=True),
    lambda payload: described(read(payload)),
)
