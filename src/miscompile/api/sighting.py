"""The search for a disagreement around one model, in this process, without a folder: a few tests, and the first
violation that repeats."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from miscompile.api.models import Arrays, OnnxModel, feed_of, file_of, model_of
from miscompile.base.errors import NothingTested, UsageError
from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.core.examination import examine
from miscompile.core.pool import Pool
from miscompile.core.verdict import Evidence, Inconclusive, Violated
from miscompile.engine.plan import Plan
from miscompile.engine.wiring import make_oracle, make_producer, oracle_context, triage_settings
from miscompile.environments.resolve import versions_of
from miscompile.graph.emit import to_program
from miscompile.ops.analysis import exact_outputs
from miscompile.ops.support import Support
from miscompile.triage.attribution import ConfirmedViolation, Confirmer
from miscompile.triage.reduce.capture import ReferenceCapture
from miscompile.triage.reduce.defined import Guard
from miscompile.triage.reduce.draft import take_apart

TESTS = 20
"""Tests by default; each draws new inputs."""

LIMIT_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class ModelTests:
    """How a model is tested: on which targets, with how many tests, from which seed; several targets vote.

    A run that takes more than `limit_seconds` is a hang. With `inputs` every test uses these instead of drawn ones.
    """

    targets: tuple[str, ...]
    tests: int = TESTS
    seed: int = 0
    limit_seconds: float = LIMIT_SECONDS
    inputs: Arrays | None = None


@dataclass(frozen=True, slots=True)
class Sighting:
    """A violation that repeats, with the case that shows it; `test` is the index of the test."""

    test: int
    case: Case
    found: ConfirmedViolation


def sight(model: OnnxModel, how: ModelTests) -> Sighting | None:
    """Return the first violation around `model` that repeats in fresh processes; None when all tests agree.

    Raises UsageError for a model that cannot be fed, MissingCompilerError for a target that is not installed, and
    NothingTested when no test could be judged.
    """
    if how.tests < 1:
        raise UsageError("a model needs at least one test")
    for target in how.targets:
        versions_of(target)
    reasons: list[str] = []
    with _cases(model, how) as (plan, cases), triage_settings(plan).pool() as pool:
        for index in range(how.tests):
            rng = stream(how.seed, "alike", index)
            case = cases(rng)
            verdict = examine(case, make_oracle(plan, {}), pool, rng).verdict
            if isinstance(verdict, Violated) and not _is_defined(case, verdict.evidence, pool):
                verdict = Inconclusive("undefined behaviour on these inputs")
            if isinstance(verdict, Violated):
                confirmer = Confirmer(pool, oracle_context(plan), plan.seed)
                if found := confirmer.investigate(case, verdict.evidence):
                    return Sighting(index, case, found)
            elif isinstance(verdict, Inconclusive):
                reasons.append(verdict.reason)
    if len(reasons) == how.tests:
        told, names = ", ".join(dict.fromkeys(reasons)), " and ".join(how.targets)
        raise NothingTested(f"{names}: none of {how.tests} tests of the model could be judged: {told}")
    return None


def plan_of_tests(how: ModelTests, model: Path | None = None) -> Plan:
    """Return the plan of a campaign that would make these tests: of the model in a file, if it is given."""
    return Plan(
        how.targets[0], how.targets[1:], seconds=None, tests=how.tests, seed=how.seed,
        model=None if model is None else str(model), limit_seconds=how.limit_seconds,
    )  # fmt: skip


@contextmanager
def _cases(model: OnnxModel, how: ModelTests) -> Iterator[tuple[Plan, Callable[[random.Random], Case]]]:
    """Yield the plan, and the function that draws the cases; the model has a file as long as they are drawn."""
    with TemporaryDirectory(prefix="miscompile-") as folder:
        plan = plan_of_tests(how, file_of(model, Path(folder)))
        producer = make_producer(plan, *[Support(open=True)] * len(how.targets))
        if how.inputs is None:
            yield plan, producer.propose
        else:
            fixed = _fixed(model, how.inputs)
            yield plan, lambda _: fixed


def _fixed(model: OnnxModel, inputs: Arrays) -> Case:
    """Return the case of a model on inputs of the caller."""
    graph = model_of(model)
    bare = to_program(graph)
    feed = feed_of(inputs, bare.inputs)
    exact = exact_outputs(graph, {port.name: value for port, value in zip(bare.inputs, feed, strict=True)})
    return Case(to_program(graph, exact), (feed,), {"producer": "inputs"})


def _is_defined(case: Case, evidence: Evidence, pool: Pool) -> bool:
    """Tell whether a case meets no undefined behaviour, where builds may differ as they like."""
    sound = evidence.reference or evidence.faulty
    return Guard(ReferenceCapture(pool, sound.target, sound.build, pool))(take_apart(case))
