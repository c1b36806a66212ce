"""The oracle of votes: wrong results that all builds of a compiler share, seen by other runtimes that are installed.

Two builds of one compiler share its front end and its kernels, so that a comparison of them cannot see an error there.
Each test runs the optimised build beside one of the quick runtimes (`About.quick`) or onnx's reference implementation.
When they disagree, the unoptimised build, both, the other quick runtimes and the other compilers that are installed
vote, as in a comparison of several targets. Only the compiler under test is accused, and only of what its unoptimised
build does as well, because other checks see the rest.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from miscompile.base.errors import ModelError
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome, Values
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence, Inconclusive, Needs, Verdict, Violated
from miscompile.graph.read import read
from miscompile.oracles.differential import (
    VOTERS,
    AgainstMajority,
    Differential,
    against_majority,
    voting_build,
)
from miscompile.oracles.kinds import NoOptions, OracleContext, OracleKind
from miscompile.oracles.majority import REFERENCE
from miscompile.targets.registry import parse_target, slower_voters_for, voters_for

_OFF = Build("off")
OPTIMISED = "the unoptimised build is right"
UNSURE = "onnx's reference implementation has no vote"


@dataclass(frozen=True, slots=True)
class Votes:
    """Compares the optimised build of `target` with one of `runtimes` or the reference, drawn for each case.

    `majority` judges; its targets are `target` alone, so that no other implementation is blamed. `plain` tells whether
    the target has an unoptimised build.
    """

    target: str
    runtimes: tuple[str, ...]
    majority: Differential
    plain: bool

    def plan(self, case: Case, rng: random.Random) -> tuple[Run, ...]:
        """Return the optimised run of the target and that of another implementation."""
        full = Build("full", self.majority.disabled.get(self.target, frozenset()))
        other = rng.choice((*self.runtimes, REFERENCE))
        return (Run(case, self.target, full), Run(case, other, voting_build(other)))

    def judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        """Judge as the majority does; ask for the unoptimised build before it is accused of an error."""
        verdict = self.majority.judge(runs, outcomes)
        if not isinstance(verdict, Violated):
            return verdict
        if not isinstance(outcomes[0], Values):
            return self._failed(verdict, runs, outcomes)
        reference = verdict.evidence.reference
        shared = reference is None or reference.target != self.target
        return verdict if shared else Inconclusive(OPTIMISED)

    def _failed(self, verdict: Violated, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        """Accuse the target of an error if its unoptimised build fails as well and onnx's reference does not."""
        own = [outcome for run, outcome in zip(runs, outcomes, strict=True) if (run.target, run.build) == self._off]
        if self.plain and not own:
            return Needs((Run(runs[0].case, self.target, _OFF, "judge"),))
        if any(isinstance(outcome, Values) for outcome in own):
            return Inconclusive(OPTIMISED)
        return run_by_reference(verdict, runs, outcomes)

    @property
    def _off(self) -> tuple[str, Build]:
        return self.target, _OFF


@dataclass(frozen=True, slots=True)
class AgainstVotes:
    """The property of one finding: the majority votes against a build, or onnx's reference runs what the build fails
    on."""

    majority: AgainstMajority

    @property
    def target(self) -> str:
        """Spec of the target at fault."""
        return self.majority.target

    @property
    def faulty(self) -> Build:
        """The build at fault."""
        return self.majority.faulty

    def plan(self, case: Case, rng: random.Random) -> tuple[Run, ...]:
        """Return the run of another implementation and the faulty run."""
        return self.majority.plan(case, rng)

    def judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        """Judge as the majority does; an error needs a program that onnx's reference implementation runs."""
        verdict = self.majority.judge(runs, outcomes)
        if not isinstance(verdict, Violated) or isinstance(outcomes[1], Values):
            return verdict
        return run_by_reference(verdict, runs, outcomes)

    def with_faulty(self, build: Build) -> "AgainstVotes":
        """Return the same property of another build."""
        return AgainstVotes(self.majority.with_faulty(build))


def run_by_reference(verdict: Violated, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
    """Return the verdict on an error if onnx's reference implementation runs the program; ask for its run first.

    It does not look at bodies that it does not enter, so that it says nothing about a program with bodies.
    """
    asked = [outcome for run, outcome in zip(runs, outcomes, strict=True) if run.target == REFERENCE]
    if asked:
        return verdict if isinstance(asked[0], Values) else Inconclusive(UNSURE)
    if _nests(runs[0].case):
        return Inconclusive(UNSURE)
    return Needs((Run(runs[0].case, REFERENCE, _OFF, "judge"),))


def _nests(case: Case) -> bool:
    """Tell whether a node of the program has a body (If, Loop, Scan, SequenceMap)."""
    try:
        model = read(case.program.payload)
    except ModelError:
        return True
    nodes = chain(model.graph.nodes, *(function.nodes for function in model.functions))
    return any(True for node in nodes for _ in node.subgraphs())


def _make(options: NoOptions, context: OracleContext) -> Votes:
    del options
    target, runtimes = context.target, voters_for(context.target)
    narrowed = context.narrowed(target, *runtimes)
    off = {target: context.off(target)}
    majority = Differential((target,), (*runtimes, *slower_voters_for(target), *VOTERS), off, narrowed)
    return Votes(target, runtimes, majority, parse_target(target).about.unoptimised)


def _hold(options: NoOptions, evidence: Evidence, context: OracleContext, facts: Mapping[str, Any]) -> AgainstVotes:
    """Return the property of a violation: the majority of what is installed here votes against the build."""
    del options
    target = evidence.faulty.target
    return AgainstVotes(against_majority(evidence, context, facts, (*voters_for(target), *slower_voters_for(target))))


KIND = OracleKind("votes", "results that all builds of a compiler share, against other runtimes", _hold, _make)
