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
from miscompile.engine.plan import Plan
from miscompile.engine.probe import probe
from miscompile.engine.wiring import make_oracle, make_producer
from miscompile.graph.emit import to_program
from miscompile.graph.read import read
from miscompile.ops.support import Support
from miscompile.oracles.special import ORACLE as SPECIAL
from miscompile.producers.scheduled import CHECK, Scheduled
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
    """Return the tests of an arm; those of `nnsmith` are the models in a folder. Raises KeyError for another name."""
    if arm == NNSMITH:
        assert models is not None
        return _stored(models)
    plan, scheduled = Plan(TARGET, schedule=True), _scheduled()
    oracles: dict[str, Oracle] = {}

    def judged(check: str) -> Oracle:
        if check not in oracles:
            off = {TARGET: ROUNDING} if check == SPECIAL else {}
            oracles[check] = make_oracle(plan, off, check)
        return oracles[check]

    if arm == MIXTURE:
        mixed = Scheduled(scheduled.arms, scheduled.makers, scheduled.weights)

        def mixture(number: int) -> tuple[Case, Oracle, float]:
            case = mixed.propose(stream(seed, arm, number))
            return case, judged(case.recipe[CHECK]), 0.0

        return mixture
    found = next(one for one in scheduled.arms if one.name == arm)
    producer = scheduled.makers[found.source]()

    def single(number: int) -> tuple[Case, Oracle, float]:
        case = producer.propose(stream(seed, arm, number))
        return replace(case, recipe={**case.recipe, CHECK: found.check}), judged(found.check), 0.0

    return single


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
