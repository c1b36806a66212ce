"""The arms that the score compares: every technique with the check of builds, every check, the default mixture."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from evaluation.mutants.campaign import Draw, NoMoreTestsError
from evaluation.mutants.running import SharedRunner, SharedRuns
from miscompile.base.rng import stream
from miscompile.core.case import Case, Feed
from miscompile.core.ports import Oracle
from miscompile.core.run import Run
from miscompile.core.tensor import tensor
from miscompile.engine.division import Division
from miscompile.engine.plan import Plan
from miscompile.engine.probe import probe
from miscompile.engine.wiring import make_oracle, make_producer
from miscompile.graph.emit import to_program
from miscompile.graph.read import read
from miscompile.ops.support import Support
from miscompile.oracles.special import ORACLE as SPECIAL
from miscompile.producers.scheduled import ARM, CHECK, Scheduled
from miscompile.targets.toy.passes.reference import ROUNDING

TARGET = "toy{optimiser=reference}"
"""The sound optimiser as a target."""

MIXTURE, NNSMITH = "mixture", "nnsmith"
_FRESH = 1000
"""Tests after which a runner forgets."""


class _ProbingRunner:
    """Answers the capability probe; each batch shares nothing with the others."""

    def run(self, runs: list[Run]) -> list[object]:
        """Return one outcome for each run."""
        return [SharedRunner(SharedRuns()).run([run])[0] for run in runs]


@cache
def support() -> Support:
    """What the toy takes, asked of it as a campaign does."""
    return probe(TARGET, Plan(TARGET).opsets, _ProbingRunner())  # type: ignore[arg-type]


@cache
def _scheduled() -> Scheduled:
    made = make_producer(Plan(TARGET, schedule=True), support())
    assert isinstance(made, Scheduled)
    return made


def names() -> tuple[str, ...]:
    """Return the names of all arms, the mixture of a default campaign first."""
    return (MIXTURE, *(arm.name for arm in _scheduled().arms))


def draw_for(arm: str, seed: int, models: Path | None = None) -> Draw:
    """Return the tests of one arm; those of `nnsmith` are the models in a folder.

    Raises StopIteration for another name, that of the mixture included.
    """
    if arm == NNSMITH:
        assert models is not None
        return _stored(models)
    scheduled = _scheduled()
    found = next(one for one in scheduled.arms if one.name == arm)
    producer, oracle = scheduled.makers[found.source](), _oracle(found.check)

    def single(number: int) -> tuple[Case, Oracle, float]:
        case = producer.propose(stream(seed, arm, number))
        return replace(case, recipe={**case.recipe, CHECK: found.check}), oracle, 0.0

    return single


class Mixture:
    """The tests of a default campaign that finds nothing: its scheduler divides the CPU time among all arms."""

    def __init__(self, seed: int) -> None:
        """Start with the shares that a campaign starts with."""
        self._seed = seed
        scheduled = _scheduled()
        self._mixed = Scheduled(scheduled.arms, scheduled.makers, scheduled.weights)
        self._division = Division(Plan(TARGET, schedule=True, seed=seed), 0, {}, set())
        self._seconds = 0.0

    def draw(self, number: int) -> tuple[Case, Oracle, float]:
        """Return a test of the arm that is drawn for it."""
        case = self._mixed.propose(stream(self._seed, MIXTURE, number))
        return case, _oracle(case.recipe[CHECK]), 0.0

    def weight(self, arm: str) -> float:
        """Return the probability that the next test is one of `arm`."""
        return self._mixed.weights[arm]

    def count(self, case: Case, seconds: float) -> None:
        """Tell the scheduler what a test cost, and take its shares when they are due."""
        self._division.add({case.recipe[ARM]: {"tests": 1, "cpu_us": round(seconds * 1e6)}})
        self._seconds += seconds
        weights = self._division.weights(self._seconds)
        if weights is not None:
            self._mixed.divide(weights)


@cache
def _oracle(check: str) -> Oracle:
    off = {TARGET: ROUNDING} if check == SPECIAL else {}
    return make_oracle(Plan(TARGET, schedule=True), off, check)


def _stored(models: Path) -> Draw:
    """Return the tests of a folder of ONNX models with the CPU seconds that each took (`seconds.json`)."""
    seconds: dict[str, float] = json.loads((models / "seconds.json").read_text("utf-8"))
    oracle = make_oracle(Plan(TARGET, schedule=True), {}, "levels")
    files = _readable(models, seconds)

    def stored(number: int) -> tuple[Case, Oracle, float]:
        found = next(files, None)
        if found is None:
            raise NoMoreTestsError
        case, spent = found
        return replace(case, recipe={"model": number}), oracle, spent

    return stored


def _readable(models: Path, seconds: dict[str, float]) -> Iterator[tuple[Case, float]]:
    for name in sorted(seconds):
        payload = (models / f"{name}.onnx").read_bytes()
        with np.load(models / f"{name}.npz") as inputs:
            program = to_program(read(payload))
            feed: Feed = tuple(tensor(inputs[port.name]) for port in program.inputs)
        yield Case(replace(program, payload=payload), (feed,)), seconds[name]
