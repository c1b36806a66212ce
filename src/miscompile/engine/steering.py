"""Steering of tests past known bugs: which passes are off in a test, and which drafts are given up before it.

A campaign that switched a pass off for good after its first bug would test less of the compiler with every finding.
Here a pass is off in single tests only. A test is *open* with probability `OPEN`: all its passes are on, unless the
program contains a known hang. So every pass is on in at least that share of the tests without hangs. In any other test
the passes are off whose known bug the program contains, and each pass whose bugs are too costly is off with a
probability that rises with their cost.
"""

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from miscompile.base.errors import ModelError
from miscompile.core.case import Case
from miscompile.core.finding import Signature
from miscompile.core.outcome import Outcome
from miscompile.core.verdict import Evidence
from miscompile.graph.read import read
from miscompile.targets.about import About
from miscompile.triage.bisect import expand
from miscompile.triage.predicate import BugPredicate, described, widened
from miscompile.triage.recognition import OperatorCounts, ProgramContents, SignedPredicate, recognised
from miscompile.triage.signature import telling

OPEN = 0.25
"""Share of the tests in which all passes are on, whatever is known about their bugs."""

THROUGH = 0.125
"""Share of the drafts with a known bug of no pass that are tested nevertheless, because other bugs may hide behind."""

HANGING = 1 / 64
"""Share of the drafts with a known hang that are tested as they are; each costs as much as hundreds of tests."""

ATTEMPTS = 4
"""Drafts that are drawn for one test at most; the last one is tested, whatever it contains."""

WORTH = 0.05
"""Cost of a pass's known bugs, in tests for each test, up to which the pass is always on."""

SEARCH_COST = 100.0
"""Cost of a violation whose culprits are searched for, in tests; a recognised one costs one test."""

LEAST_ASKED = 1 / 16
"""Least share of the unrecognised violations with the signature of a known bug that are triaged."""

ALIKE = 1 / 8
"""Share of the violations of programs with a known bug's operators that are triaged, beside the share above."""

DOUBTED = 1 / 16
"""Share of the violations that match a predicate which this lane has widened, but are searched all the same."""

LEAST_TESTS = 200
"""Tests that are taken for granted when a rate is estimated, so that one early violation does not decide."""


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
    known: list[SignedPredicate] = field(default_factory=list)
    costs: dict[str, dict[str, float]] = field(default_factory=dict)
    """By target: the cost of the known bugs of each pass so far, in tests."""
    tests: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By target and pass with known bugs: tests in which it was on."""
    wider: list[SignedPredicate] = field(default_factory=list)
    """Those of the known bugs that this lane has widened."""

    def learn(self, bugs: Iterable[SignedPredicate]) -> None:
        """Add known bugs; one that is known already is skipped. A pattern without nodes counts as widened."""
        for bug in bugs:
            if bug not in self.known:
                self.known.append(bug)
                self.wider += [] if bug.predicate.nodes else [bug]

    def recognise(self, case: Case, evidence: Evidence, outcome: Outcome | None) -> SignedPredicate | None:
        """Return the known bug that a violation is, None for a new one; `outcome` is that of the faulty run."""
        return recognised(self.known, case, evidence, outcome)

    def widen(self, case: Case, evidence: Evidence, outcome: Outcome | None, signature: Signature) -> None:
        """Widen the predicate of a known bug to a program that shows it, so that the next such violation is recognised.

        A search has found that the violation has this signature, although no predicate explained it. A pattern of one
        node stays as it is where the symptom has no message, because little else would tell the bug from others.
        """
        for place, bug in enumerate(self.known):
            predicate = bug.predicate
            narrow = len(predicate.nodes) > 1 or telling(predicate.symptom)
            if bug.signature != signature or not narrow or not predicate.explains(evidence, outcome):
                continue
            try:
                wide = widened(predicate, described(read(case.program.payload)))
            except ModelError:
                return
            if wide != predicate:
                self.known[place] = SignedPredicate(wide, signature)
                self.wider = [*(one for one in self.wider if one != bug), self.known[place]]
                return

    def doubts(self, bug: SignedPredicate, rng: random.Random) -> bool:
        """Tell whether a match is searched all the same, because a predicate that was widened may hide another bug."""
        return rng.random() < DOUBTED and bug in self.wider

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
        operators = OperatorCounts(case.program)
        if any(bug.has_operators(operators) for bug in known):
            chance *= ALIKE
        return rng.random() < chance

    def course(self, case: Case, rng: random.Random) -> Course:
        """Decide about a draft. Deterministic for a given `rng` and the same knowledge."""
        if not self.enabled:
            return Course({})
        through, is_open, hanging = rng.random() < THROUGH, rng.random() < OPEN, rng.random() < HANGING

        def admitted(bug: BugPredicate) -> bool:
            return hanging if bug.kind == "hang" else is_open if bug.passes else through

        contained = self._contained(case, [bug for bug in self.known if not admitted(bug.predicate)])
        if any(not bug.passes for bug in contained):
            return Course({}, given_up=True)
        disabled = {target: self._off(target, contained) for target in self.abouts}
        if not is_open:
            disabled = {target: names | self._too_costly(target, rng) for target, names in disabled.items()}
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

    def _off(self, target: str, contained: Iterable[BugPredicate]) -> frozenset[str]:
        """Return the passes to switch off against the bugs that the program contains."""
        off: set[str] = set()
        for bug in contained:
            if bug.target == target:
                off |= self.avoiding(target, bug.passes)
        return frozenset(off)

    def _too_costly(self, target: str, rng: random.Random) -> frozenset[str]:
        """Draw the passes that are off because their bugs are often seen without a match."""
        off: set[str] = set()
        for name, cost in sorted(self.costs.get(target, {}).items()):
            rate = cost / (LEAST_TESTS + self.tests[target, name])
            if rng.random() > WORTH / max(rate, WORTH):
                off.add(name)
        return frozenset(off)

    def _contained(self, case: Case, bugs: Iterable[SignedPredicate]) -> list[BugPredicate]:
        """Return the predicates whose pattern the draft contains; only plain builds' ones, which any test may have."""
        program, found = ProgramContents(case), []
        for bug in bugs:
            if not bug.predicate.transform and program.include(bug):
                found.append(bug.predicate)
        return found
