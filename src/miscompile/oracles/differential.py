"""The differential oracle: one program on several compilers; the majority vote names the compiler at fault.

A third of known bugs do not depend on optimisation, so that both builds of the guilty compiler agree
(differential testing of compilers: McKeeman 1998). Every compiler builds the program once, fully optimised. When two
disagree, a second round asks for the unoptimised build of each, for the ONNX reference implementation, and for a
Monte-Carlo run that measures how far correct results may lie apart. Then ballots that agree form groups. The group with
the most implementations, enough of them and more than any other, is right, and every other ballot is at fault. Without
such a group the verdict is Inconclusive.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from miscompile.base.errors import ModelError
from miscompile.core.case import Case
from miscompile.core.outcome import Defect, Outcome, OutOfMemory, Rejected, Unsupported, Values, status_of
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence, Holds, Inconclusive, Needs, Verdict, Violated
from miscompile.oracles.compare import contradiction, finite, mismatches, within_ulps
from miscompile.oracles.instrumentation import NOT_NARROWED, ULPS
from miscompile.oracles.judge import SURELY, bad_build, is_noise, undeclared
from miscompile.oracles.kinds import NoOptions, OracleContext, OracleKind
from miscompile.oracles.majority import REFERENCE, Ballot, MajorityVote, count_votes
from miscompile.oracles.montecarlo import FLOOR, THRESHOLD, joined, noise_seed, noise_twins
from miscompile.oracles.narrow import fit_of

ABSTAINS = (Unsupported, Rejected, OutOfMemory, Defect)
_LAWFUL = (Values, *ABSTAINS)
MADE_FOR, ABSENT = "targets", "absent"
"""Keys of a recipe: the targets that a program was made for (default: all), and those that leave out its test."""

VOTERS = (REFERENCE,)
"""Targets that run in the second round of a differential judgement only."""
NO_PASSES: Mapping[str, frozenset[str]] = {}


@dataclass(frozen=True, slots=True)
class Differential:
    """Compares the fully optimised builds of `targets` (specs) with each other.

    `voters` run in the second round only; `disabled` are the passes that stay off, by target; `narrowed` maps the types
    that some target computes in a narrower type by design. A case's recipe may name the targets that take part. A
    target that lacks an operator abstains. With `accused`, a target and a build, only that build is blamed.
    """

    targets: tuple[str, ...]
    voters: tuple[str, ...] = ()
    disabled: Mapping[str, frozenset[str]] = field(default_factory=lambda: NO_PASSES)
    narrowed: Mapping[str, str] = field(default_factory=lambda: NOT_NARROWED)
    accused: tuple[str, Build] | None = None

    def plan(self, case: Case, rng: random.Random) -> tuple[Run, ...]:
        """Return the optimised run of every target that takes part."""
        del rng
        absent = case.recipe.get(ABSENT, ())
        chosen = [target for target in case.recipe.get(MADE_FOR, self.targets) if target not in absent]
        return tuple(Run(case, target, Build("full", self.disabled.get(target, frozenset()))) for target in chosen)

    def judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        """Judge the first round by equality, the second by majority vote."""
        seen = [(run, outcome) for run, outcome in zip(runs, outcomes, strict=True) if not is_noise(run)]
        noises = [outcome for run, outcome in zip(runs, outcomes, strict=True) if is_noise(run)]
        second = any(run.purpose == "judge" for run, _ in seen)
        ballots = [Ballot(run, outcome) for run, outcome in seen if isinstance(outcome, Values)]
        failures = [(run, outcome) for run, outcome in seen if not isinstance(outcome, _LAWFUL)]
        failed = next((one for one in failures if not (second and self._is_voter(one[0]))), None)
        if failed is not None:
            return self._failed(*failed, ballots)
        if len({ballot.run.target for ballot in ballots}) < 2:
            return Inconclusive(_why_alone([outcome for _, outcome in seen]))
        if self._agree(ballots):
            return Holds()
        fit = fit_of(runs[0].case, self.narrowed)
        if fit == "overflows":
            return Inconclusive("beyond a type that is narrower by design")
        if not second:
            return self._second_round(runs, ballots)
        return self._decide(count_votes(ballots, joined(noises) if noises else None, exact=fit == "fits"))

    def _failed(self, run: Run, outcome: Outcome, ballots: Sequence[Ballot]) -> Verdict:
        """Judge an error or death; if another implementation accepts the program, the program is valid."""
        if self._is_voter(run):
            return Inconclusive(f"voter {status_of(outcome)}")
        others = [ballot.run for ballot in ballots if ballot.run.target != run.target]
        own = [ballot.run for ballot in ballots if ballot.run.target == run.target and ballot.run.build.level == "off"]
        return bad_build(run, next(iter([*own, *others]), None), outcome)

    def _is_voter(self, run: Run) -> bool:
        return run.target in self.voters and run.target not in self.targets

    def _agree(self, ballots: Sequence[Ballot]) -> bool:
        first, ports = ballots[0], ballots[0].run.case.program.outputs
        if contradiction(ports, first.values):
            return False
        return all(self._close(first.values, other.values, first.run) for other in ballots[1:])

    def _close(self, one: Values, other: Values, run: Run) -> bool:
        """Tell whether two results are equal, or so near that the majority vote would take them for equal."""
        allowed = SURELY * THRESHOLD * ULPS
        ports = run.case.program.outputs
        for found in mismatches(ports, one, other):
            want, got = one.results[found.feed][found.output], other.results[found.feed][found.output]
            if found.kind != "wrong" or want is None or got is None:
                return False
            narrow = self.narrowed.get(want.dtype, "")
            if ports[found.output].exact and not self.narrowed:
                return False
            if not within_ulps(want, got, allowed, FLOOR * allowed, narrow):
                return False
        return True

    def _second_round(self, runs: Sequence[Run], ballots: Sequence[Ballot]) -> Verdict:
        case, done = runs[0].case, {(run.target, run.build) for run in runs}
        targets = list(dict.fromkeys(ballot.run.target for ballot in ballots))
        plain = [Run(case, target, Build("off"), "judge") for target in targets]
        voters = [one for one in dict.fromkeys(self.voters) if one not in targets]
        plain += [Run(case, voter, Build("off"), "judge") for voter in voters]
        plain = [run for run in plain if (run.target, run.build) not in done]
        try:
            twins = noise_twins(case, noise_seed(case), self.narrowed)
        except ModelError:
            return Needs(tuple(plain))
        return Needs((*plain, *(Run(twin, targets[0], Build("off"), "judge") for twin in twins)))

    def _decide(self, vote: MajorityVote) -> Verdict:
        """Blame the first optimised build, else the first build, that does not belong to the right group.

        Voters are never blamed.
        """
        right = vote.right
        if right is None:
            return Inconclusive("no majority")
        if not finite(right[0].values):
            return Inconclusive("reference not finite")
        for ballot in vote.outside:
            if self._is_voter(ballot.run) or self.accused not in (None, (ballot.run.target, ballot.run.build)):
                continue
            supporter = next((one for one in right if one.run.target == ballot.run.target), right[0])
            breach = contradiction(ballot.run.case.program.outputs, supporter.values)
            if breach:
                return undeclared(supporter.run, breach)
            found = vote.difference(supporter, ballot)
            votes = {
                f"{b.run.target} {b.run.build.level}": number for number, group in enumerate(vote.all) for b in group
            }
            details = {**found.details, "votes": votes}
            return Violated(
                Evidence(found.kind, found.rule, found.message, ballot.run, supporter.run, found.output, details)
            )
        return Holds("only voters disagree")


@dataclass(frozen=True, slots=True)
class AgainstMajority:
    """The property of one finding: the majority votes against the build `faulty` of `target`.

    The first round runs `others[0]` only. When it disagrees with `target`, the rest of `others` and the voters run as
    well, so that a case keeps the property only while at least two implementations outvote `target`.
    """

    target: str
    faulty: Build
    others: tuple[str, ...]
    narrowed: Mapping[str, str] = field(default_factory=lambda: NOT_NARROWED)

    def plan(self, case: Case, rng: random.Random) -> tuple[Run, ...]:
        """Return the run of the first other implementation and the faulty run."""
        del rng
        other = Run(case, self.others[0], voting_build(self.others[0]), "confirm")
        return (other, Run(case, self.target, self.faulty, "confirm"))

    def judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        """Judge as the differential oracle does, but let only `target` be at fault; the others vote, or fail and do
        not."""
        accused = (self.target, self.faulty)
        oracle = Differential((self.target,), (*self.others, *VOTERS), NO_PASSES, self.narrowed, accused)
        verdict = oracle.judge(runs, outcomes)
        if isinstance(verdict, Violated):
            blamed = verdict.evidence.faulty
            if (blamed.target, blamed.build) != accused:
                return Inconclusive("another build is at fault")
        return verdict

    def with_faulty(self, build: Build) -> "AgainstMajority":
        """Return the same property of another build."""
        return replace(self, faulty=build)


def _hold(options: NoOptions, evidence: Evidence, context: OracleContext, facts: Mapping[str, Any]) -> AgainstMajority:
    """Return the property of a violation; the other targets are the campaign's, the reference of the violation first.

    Without a known campaign, only the reference and the voters are compared.
    """
    del options
    return against_majority(evidence, context, facts, context.targets)


def against_majority(
    evidence: Evidence, context: OracleContext, facts: Mapping[str, Any], targets: Sequence[str]
) -> AgainstMajority:
    """Return the property that the majority votes against the faulty build of `evidence`.

    The other targets are the reference of the violation, then those of `targets`.
    """
    target, reference = evidence.faulty.target, evidence.reference
    first = str(facts.get("against") or (reference.target if reference is not None else ""))
    named = dict.fromkeys((first, *targets))
    others = tuple(name for name in named if name and name != target)
    narrowed = context.narrowed(target, *others)
    return AgainstMajority(target, evidence.faulty.build, others, narrowed)


KIND = OracleKind("differential", "several compilers against each other: the majority is right", _hold)


def voting_build(target: str) -> Build:
    """Return the build by which a target takes part in the first round; onnx's reference has our definitions at level
    `off`."""
    return Build("off" if target == REFERENCE else "full")


def _why_alone(outcomes: Sequence[Outcome]) -> str:
    refused = next((outcome for outcome in outcomes if isinstance(outcome, ABSTAINS)), None)
    return "no second opinion" if refused is None else status_of(refused).replace("outofmemory", "out of memory")
