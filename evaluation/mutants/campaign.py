"""A campaign against the sound toy in which every test is also run on the mutants that it concerns.

The cost of a test is the CPU time of a campaign that has only one compiler under test: the program, the builds and runs
of the sound toy, and the judgement. So the time to the kill of a mutant is what a campaign against it alone would take,
while all mutants share the programs.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from evaluation.mutants.infection import Infection
from evaluation.mutants.running import SharedRunner, SharedRuns, TracingRunner
from miscompile.base.rng import stream
from miscompile.core.case import Case, Port
from miscompile.core.examination import Examination, conclude
from miscompile.core.pool import Pool
from miscompile.core.ports import Oracle
from miscompile.core.run import Run
from miscompile.core.verdict import Inconclusive, Verdict, Violated
from miscompile.findings.folder import save
from miscompile.oracles.judge import judge_pair
from miscompile.oracles.kinds import OracleContext
from miscompile.targets.toy.mutants import Optimiser, load, mutants
from miscompile.transforms.runner import TransformingRunner
from miscompile.triage.attribution import model_of, to_stored
from miscompile.triage.signature import signature_of

_RENEWED = 0.8
"""Share of the mutants with probes that is left when the probes are made anew."""

_KERNELS = "kernels."

ENOUGH = 500
"""Tests that change the program of a mutant, and not the verdict, after which the campaign gives it up: it survives."""

_OFTEN, _RARELY = 30, 10
"""A mutant whose program came out unchanged this often is run on one infecting test of so many only."""


@dataclass(slots=True)
class Kill:
    """The first test that finds a mutant: its number, the CPU seconds of the campaign until then, and the evidence."""

    test: int
    seconds: float
    kind: str
    rule: str


@dataclass(slots=True)
class Score:
    """The figures of one arm: what it found, and by what it was misled.

    `fixed` are the kills of the on/off comparison with a fixed threshold on the same programs, `misled` its false
    alarms. `infected` counts the tests that concerned each mutant, `changed` those after which its optimised program
    was another one, and `visible` those of them in which an outcome had other bits. `broken` are the mutants that
    cannot even be loaded; `done` tells whether the campaign reached its end.
    """

    arm: str
    tests: int = 0
    seconds: float = 0.0
    inconclusive: int = 0
    false_alarms: list[str] = field(default_factory=list)
    misled: int = 0
    kills: dict[str, Kill] = field(default_factory=dict)
    fixed: dict[str, Kill] = field(default_factory=dict)
    infected: dict[str, int] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)
    visible: dict[str, int] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    done: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the figures as a JSON object."""
        return asdict(self)


def score_from(data: dict[str, Any]) -> Score:
    """Read back what `Score.as_json` returned."""
    kills = {name: {key: Kill(**kill) for key, kill in data[name].items()} for name in ("kills", "fixed")}
    return Score(**{**data, **kills})


class NoMoreTestsError(Exception):
    """An arm with a fixed number of tests has no further one."""


Draw = Callable[[int], tuple[Case, Oracle, float]]
"""Returns the case of a test and the oracle that judges it, with CPU seconds that were spent on it elsewhere."""

Count = Callable[[Case, float], None]
"""Takes notice of the CPU seconds of a campaign's test."""


def ignore(case: Case, seconds: float) -> None:
    """Take no notice: the draws do not depend on what tests cost."""
    del case, seconds


class MutantCampaign:
    """The campaign of one arm; `run` yields its figures so far.

    A violation of the sound optimiser is stored below `keep`, because a later campaign may not draw its program again:
    what the scheduler draws depends on how long tests take.
    """

    def __init__(
        self,
        arm: str,
        draw: Draw,
        seed: int,
        names: tuple[str, ...],
        count: Count = ignore,
        keep: Path | None = None,
    ) -> None:
        self.score = Score(arm)
        self._keep = keep
        self._draw = draw
        self._count = count
        self._seed = seed
        self._living = set(names)
        self._unfixed = set(names)
        self._modules = {mutant.name: mutant.module for mutant in mutants()}
        self._loaded: dict[str, Optimiser] = {}
        self._probed = 0
        self._infection: Infection | None = None

    def run(self, seconds: float, most_tests: int) -> Iterator[Score]:
        """Test for `seconds` of the campaign's CPU time or `most_tests` tests; yield the figures after each test."""
        while self.score.seconds < seconds and self.score.tests < most_tests:
            try:
                self._test(self.score.tests)
            except NoMoreTestsError:
                return
            self.score.tests += 1
            yield self.score

    def _test(self, number: int) -> None:
        begin = time.process_time()
        case, oracle, elsewhere = self._draw(number)
        shared = SharedRuns()
        runs = oracle.plan(case, stream(self._seed, "plan", number))
        sound = self._examined(runs, oracle, SharedRunner(shared))
        spent = time.process_time() - begin + elsewhere
        self.score.seconds += spent
        self._count(case, spent)
        self._judge_sound(number, case, sound)
        if isinstance(sound.verdict, Violated):
            return
        for name in self._concerned(runs, shared):
            self._try(name, number, runs, oracle, shared, sound)

    def _judge_sound(self, number: int, case: Case, sound: Examination) -> None:
        score = self.score
        if isinstance(sound.verdict, Violated):
            evidence = sound.verdict.evidence
            score.false_alarms.append(f"test {number}: {evidence.kind} {evidence.rule} {evidence.message}")
            if self._keep is not None:
                self._keep.mkdir(exist_ok=True)
                context = OracleContext((evidence.faulty.target,))
                signature = signature_of(evidence, None, (), model_of(case))
                save(self._keep, to_stored(evidence, signature, case, {}, context, test=number))
        score.inconclusive += isinstance(sound.verdict, Inconclusive)
        score.misled += isinstance(_fixed(sound), Violated)

    def _examined(self, runs: tuple[Run, ...], oracle: Oracle, runner: SharedRunner) -> Examination:
        presenting = TransformingRunner(cast(Pool, runner))  # it only calls `run`
        return conclude(runs, presenting.run(runs), oracle, presenting)

    def _concerned(self, runs: tuple[Run, ...], shared: SharedRuns) -> list[str]:
        """Return the mutants that still live and that the test infects."""
        wanted = self._living | self._unfixed
        if not wanted:
            return []
        if self._infection is None or len(wanted) < _RENEWED * self._probed:
            self._infection, self._probed = Infection(wanted), len(wanted)
        TransformingRunner(cast(Pool, TracingRunner(shared, self._infection))).run(runs)
        return sorted(shared.infected & wanted)

    def _try(
        self, name: str, number: int, runs: tuple[Run, ...], oracle: Oracle, shared: SharedRuns, sound: Examination
    ) -> None:
        score = self.score
        infected, changed = score.infected.get(name, 0), score.changed.get(name, 0)
        score.infected[name] = infected + 1
        if infected - changed >= _OFTEN and infected % _RARELY:
            return
        if name not in self._loaded:
            try:
                self._loaded[name] = load(name)
            except Exception:  # noqa: BLE001 - a mutant that cannot be loaded is none
                score.broken.append(name)
                self._forget(name)
                return
        kernels = self._modules[name].startswith(_KERNELS)
        runner = SharedRunner(shared, self._loaded[name], name=name, kernels=kernels)
        presenting = TransformingRunner(cast(Pool, runner))
        outcomes = presenting.run(runs)
        if not runner.differed:
            return
        score.changed[name] = changed + 1
        if changed >= ENOUGH:
            self._forget(name)
            return
        if not runner.visible:
            return
        score.visible[name] = score.visible.get(name, 0) + 1
        if name in self._living:
            found = conclude(runs, outcomes, oracle, presenting)
            self._note(name, number, found.verdict, self._living, score.kills)
        if name in self._unfixed:
            verdict = _fixed(Examination(sound.verdict, runs, tuple(outcomes)))
            self._note(name, number, verdict, self._unfixed, score.fixed)
        if name not in self._living and name not in self._unfixed:
            self._forget(name)

    def _forget(self, name: str) -> None:
        self._living.discard(name)
        self._unfixed.discard(name)
        self._loaded.pop(name, None)

    def _note(self, name: str, number: int, verdict: Verdict, living: set[str], kills: dict[str, Kill]) -> None:
        if isinstance(verdict, Violated):
            living.discard(name)
            kills[name] = Kill(number, round(self.score.seconds, 3), verdict.evidence.kind, verdict.evidence.rule)


def _fixed(found: Examination) -> Verdict:
    """Judge the optimised build as the papers do: against the unoptimised one, with a fixed threshold alone."""
    runs = [run for run in found.runs[:2] if run.build.transform is None]
    if len(runs) < 2 or (runs[0].build.level, runs[1].build.level) != ("off", "full"):
        return Inconclusive("no pair of builds")
    program = runs[0].case.program
    inexact = replace(program, outputs=tuple(Port(one.name, one.dtype, one.shape) for one in program.outputs))
    blunt = [replace(run, case=replace(run.case, program=inexact)) for run in runs]
    return judge_pair(blunt, found.outcomes[:2], "fixed")
