"""A campaign without processes around it: generate, compare, attribute, reduce, on the toy compiler."""

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "targets" / "toy"))

from toy_bench import InProcessRunner as InProcessRunner

from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome
from miscompile.core.ports import Producer, Runner
from miscompile.core.run import Build, Run
from miscompile.core.verdict import FindingKind, Needs, Verdict, Violated
from miscompile.engine.plan import Plan
from miscompile.engine.probe import probe
from miscompile.engine.wiring import make_producer
from miscompile.graph.read import read
from miscompile.ops.analysis import reprogram
from miscompile.ops.support import Support
from miscompile.oracles.pair import BuildPair
from miscompile.targets.toy.about import ABOUT
from miscompile.triage.bisect import culprits, expand
from miscompile.triage.reduce.engine import Budget, Reduced, reduce_case
from miscompile.triage.reduce.graphs import GraphDrafts

OFF, FULL = Build("off"), Build("full")


PRODUCERS = ("strict{variants=1}", "sweep{share=0.15, variants=1}")
"""Every test has a graph of its own, so that the stated numbers of tests count graphs."""


@cache
def support() -> Support:
    """What the toy takes, asked of it as a campaign does."""
    return probe("toy", Plan("toy").opsets, InProcessRunner("toy"))


@dataclass
class Trail:
    """The cases that a campaign with `seed` makes, each with its honest unoptimised outcome; made once, as needed."""

    seed: int
    _producer: Producer
    _made: list[tuple[Case, Outcome]]

    def cases(self, limit: int) -> Iterator[tuple[Case, Outcome]]:
        """Yield the first `limit` cases."""
        honest = InProcessRunner("toy")
        for index in range(limit):
            if index == len(self._made):
                case = self._producer.propose(stream(self.seed, "quality", index))
                self._made.append((case, honest.run([Run(case, "toy", OFF)])[0]))
            yield self._made[index]


@cache
def trail(seed: int) -> Trail:
    """Return the trail of `seed`: the same object for every test in this process."""
    return Trail(seed, make_producer(Plan("toy", seed=seed, producers=PRODUCERS), support()), [])


def pair_on(target: str) -> BuildPair:
    """The pair that the optimisation oracle compares first."""
    return BuildPair(target, OFF, FULL)


def judged(case: Case, reference: Outcome, pair: BuildPair, runner: Runner) -> Verdict:
    """Judge the optimised build, with the Monte-Carlo round if it is asked for."""
    runs = pair.plan(case, random.Random(0))
    outcomes = [reference, *runner.run(runs[1:])]
    verdict = pair.judge(runs, outcomes)
    if isinstance(verdict, Needs):
        verdict = pair.judge((*runs, *verdict.runs), [*outcomes, *runner.run(verdict.runs)])
    return verdict


def hunt(target: str, kind: FindingKind, runner: Runner, seed: int, limit: int) -> Iterator[tuple[int, Case]]:
    """Yield index and case of each violation of `kind` within `limit` cases."""
    pair = pair_on(target)
    for index, (case, reference) in enumerate(trail(seed).cases(limit)):
        verdict = judged(case, reference, pair, runner)
        if isinstance(verdict, Violated) and verdict.evidence.kind == kind:
            yield index, case


def blame(target: str, case: Case, runner: Runner) -> tuple[str, ...]:
    """Return the culprit passes; twins are named by the first of them."""
    return culprits(case, pair_on(target), runner, ABOUT.passes, ABOUT.twins, stream(0, "blame"))


def reduced(target: str, case: Case, runner: Runner, tries: int = 2000) -> Reduced | None:
    """Reduce `case` with its attribution held fast, as a triage worker does."""
    guilty = blame(target, case, runner)
    pair = pair_on(target)
    held = pair.healed_without(expand(guilty, ABOUT.twins)) if guilty else pair
    return reduce_case(case, held, runner, stream(0, "shrink"), GraphDrafts(runner, reprogram), budget=Budget(tries))


def operators(case: Case) -> list[str]:
    """Operators of a case's graph, not counting Constant."""
    return [node.op for node in read(case.program.payload).graph.nodes if node.op != "Constant"]
