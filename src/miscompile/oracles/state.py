"""The oracle of state: a built program must give the same bits however often, and in whatever way, it is used.

The optimised build is held against itself: run again after other inputs and from the same memory, and used in the ways
that its adapter offers (`About.repeats`: in several threads at once, with memory that is bound and used again). Both
runs are of one build with one thread for each call, so the same kernels add in the same order, and any difference is a
bug: state that a run leaves behind, a race, memory that nobody has written.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from miscompile.base.errors import ModelError
from miscompile.base.specs import Spec
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome, Values, status_of
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence, Holds, Inconclusive, Verdict, Violated
from miscompile.graph.randomness import plain
from miscompile.graph.read import read
from miscompile.oracles.compare import contradiction, mismatches
from miscompile.oracles.judge import bad_build
from miscompile.oracles.kinds import NoOptions, OracleContext, OracleKind
from miscompile.targets.registry import parse_target
from miscompile.transforms.catalogue import AGAIN

_FULL = Build("full")

RULE = "bits"
"""The rule that evidence of this oracle names."""


@dataclass(frozen=True, slots=True)
class SameBits:
    """Holds a build that is used in one of `ways` against a plain run of the same build.

    The property of a finding names the way as the transform of `faulty`. Whatever passes that build does without, the
    plain run does without them too: two builds with other passes need not agree in every bit.
    """

    target: str
    ways: tuple[Spec, ...] = (AGAIN,)
    faulty: Build = _FULL

    def plan(self, case: Case, rng: random.Random) -> tuple[Run, ...]:
        """Return the plain run, and one of a drawn way."""
        way = self.faulty.transform or rng.choice(self.ways)
        builds = (replace(self.faulty, transform=None), replace(self.faulty, transform=way))
        return tuple(Run(case, self.target, build) for build in builds)

    def judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        """Compare the two runs bit by bit."""
        first_use, other = outcomes[0], outcomes[1]
        if not isinstance(first_use, Values):
            return Inconclusive(f"{status_of(first_use)} in a plain run")  # other oracles judge that
        ports = runs[0].case.program.outputs
        if contradiction(ports, first_use):  # memory that is bound has the declared shape
            return Inconclusive("undeclared types in a plain run")
        if not isinstance(other, Values):
            return bad_build(runs[1], runs[0], other)
        found = mismatches(ports, first_use, other)
        if not found:
            return Holds()
        if _random(runs[0].case):
            return Inconclusive("the program is random")
        first = found[0]
        port = ports[first.output]
        message = f"output '{port.name}' has other bits: {first.detail}"
        details = {"feed": first.feed, "output": first.output}
        return Violated(Evidence(first.kind, RULE, message, runs[1], runs[0], port.name, details))

    def with_faulty(self, build: Build) -> "SameBits":
        """Return the same property of another build, which is used in the way of its transform."""
        return replace(self, faulty=build)


def _random(case: Case) -> bool:
    try:
        return not all(plain(node) for node in read(case.program.payload).graph.nodes)
    except ModelError:
        return True


def _hold(options: NoOptions, evidence: Evidence, context: OracleContext, facts: Mapping[str, Any]) -> SameBits:
    """Return the property of one finding: its build, in the way in which it is used."""
    del options, facts, context
    return SameBits(evidence.faulty.target, faulty=evidence.faulty.build)


def _make(options: NoOptions, context: OracleContext) -> SameBits:
    del options
    ways = (AGAIN, *parse_target(context.target).about.repeats)
    return SameBits(context.target, ways, Build("full", context.off(context.target)))


KIND = OracleKind("state", "the optimised build must give the same bits however it is used", _hold, _make)
