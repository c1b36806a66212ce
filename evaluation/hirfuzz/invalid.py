"""Disruptive mode: reactions of targets to invalid programs of one operator (HIRFUZZ, section 5.4)."""

import time
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

from evaluation.measures import ConfirmedFailure, DifferentFailures, Watch, failure_of, unique, unwatched
from evaluation.series import Judged, SeriesPools, run_series
from miscompile.base.rng import stream
from miscompile.core.examination import examine
from miscompile.core.outcome import Outcome, OutOfMemory, TimedOut, Values
from miscompile.core.verdict import Violated
from miscompile.graph.read import read
from miscompile.ops.support import Support
from miscompile.oracles.disruptive import Disruptive
from miscompile.producers.disruptive.checker import ChildChecker
from miscompile.producers.disruptive.producer import DisruptiveOptions
from miscompile.producers.disruptive.producer import DisruptiveProducer as Breaker
from miscompile.producers.disruptive.proof import Check
from miscompile.targets.registry import load_attribute, parse_target
from miscompile.triage.signature import signature_of

PAPERS_GRAPHS, PAPERS_BUGS = 170, 3
"""The paper's 170 graphs are those, of an unstated number, that all killed TVM; three bugs were behind them."""

ENDINGS = ("death", "hang", "memory", "accepted", "tolerated", "refused")
"""The outcomes of an invalid program: the worker dies; it hangs; it runs out of memory; the program gives values, which
counts as a finding; it gives values, which does not count; a clean error."""


@dataclass(frozen=True, slots=True)
class InvalidSeries:
    """The outcomes of invalid programs on one target.

    `combinations` counts the different (operator, kind of constraint, dtypes) among them, `endings` the programs by
    outcome; `unstable` findings did not show again in a fresh worker and count as refused.
    """

    target: str
    programs: int
    combinations: int
    endings: Mapping[str, int]
    failures: tuple[ConfirmedFailure, ...]
    unstable: int
    seconds: float

    @property
    def unique(self) -> DifferentFailures:
        """How many different findings there are."""
        return unique(self.failures)

    def as_json(self) -> dict[str, Any]:
        """Return the series as a JSON object."""
        names = ("target", "programs", "combinations", "unstable", "seconds")
        return {
            **{name: getattr(self, name) for name in names},
            "endings": {ending: self.endings.get(ending, 0) for ending in ENDINGS},
            "unique": self.unique.as_json(),
            "failures": [failure.as_json() for failure in self.failures],
            "paper": {"crashing_graphs": PAPERS_GRAPHS, "bugs": PAPERS_BUGS},
        }


def measure(pools: SeriesPools, support: Support, programs: int, watch: Watch = unwatched) -> InvalidSeries:
    """Give the target `programs` invalid programs; every finding is run again in a fresh worker before it counts."""
    with closing(ChildChecker()) as check:
        return measure_proven(pools, support, programs, check, watch)


def measure_proven(
    pools: SeriesPools, support: Support, programs: int, check: Check, watch: Watch = unwatched
) -> InvalidSeries:
    """Measure with `check` as onnx's checker, which proves that programs are invalid."""
    plan, begin = pools.plan, time.monotonic()
    face = parse_target(plan.target).about
    generator_options = DisruptiveOptions(
        opsets=tuple(opset for opset in DisruptiveOptions().opsets if opset <= face.max_opset)
    )
    lowered = bool(load_attribute(face.script).program)  # what such a target compiles is not the model itself
    producer, oracle = Breaker(generator_options, support, lowered=lowered, check=check), Disruptive(plan.target)
    endings, combinations, failures, unstable = Counter[str](), set[tuple[str, ...]](), list[ConfirmedFailure](), 0
    for judged in run_series(pools, producer, oracle, programs, partial(stream, plan.seed, "bench", "broken")):
        combinations.add(_combination(judged))
        failure = _confirmed(pools, oracle, judged) if isinstance(judged.verdict, Violated) else None
        if failure is not None:
            failures.append(failure)
            endings[failure.kind] += 1
        else:
            unstable += isinstance(judged.verdict, Violated)
            endings["tolerated" if isinstance(judged.outcomes[-1], Values) else _excused(judged.outcomes)] += 1
        watch(f"{plan.target}, invalid programs", judged.test + 1, programs)
    return InvalidSeries(
        plan.target, programs, len(combinations), endings, tuple(failures), unstable, time.monotonic() - begin
    )


def _excused(outcomes: tuple[Outcome, ...]) -> str:
    """Return what became of a program that is no finding."""
    if any(isinstance(outcome, TimedOut) for outcome in outcomes):
        return "hang"
    return "memory" if any(isinstance(outcome, OutOfMemory) for outcome in outcomes) else "refused"


def _combination(judged: Judged) -> tuple[str, ...]:
    case = judged.case
    broken = case.recipe.get("broken", {})
    dtypes = ",".join(port.dtype for port in case.program.inputs)
    return str(case.recipe.get("op", "")), str(broken.get("kind", "")), dtypes


def _confirmed(pools: SeriesPools, oracle: Disruptive, judged: Judged) -> ConfirmedFailure | None:
    """Return the failure, None when it does not show again in a fresh worker."""
    assert isinstance(judged.verdict, Violated)
    pools.second.fresh()
    again = examine(judged.case, oracle, pools.second, stream(pools.plan.seed, "bench", "again"))
    if not isinstance(again.verdict, Violated) or again.verdict.evidence.kind != judged.verdict.evidence.kind:
        return None
    evidence = again.verdict.evidence
    signature = signature_of(evidence, again.faulty, (), read(judged.case.program.payload))
    return failure_of(judged.test, evidence, again.faulty, str(signature))
