"""Failing tests and different failures, with and without guidance (HIRFUZZ, section 5.5, second experiment)."""

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

from evaluation.failure_log import FailureLog, SettledFailures
from evaluation.measures import DifferentFailures, Watch, unique, unwatched
from evaluation.series import SeriesPools, run_series
from miscompile.base.rng import stream
from miscompile.engine.wiring import make_oracle
from miscompile.ops.support import Support
from miscompile.producers.hirfuzz.producer import Hirfuzz, HirfuzzOptions, PresetGuidance

PAPERS_BUGS = {"gate": (11, 24), "off": (8, 37)}
"""Bugs and failing tests of the paper in two days on TVM 0.9, told apart by hand."""

MODES: tuple[PresetGuidance, ...] = ("gate", "off")


@dataclass(frozen=True, slots=True)
class FailureSeries:
    """The result of one series of tests on one target.

    `settled` holds the outcome of triage for its violations, `score` the coverage of the graphs.
    `seconds` are wall-clock seconds: of the tests with the confirming of failures, and of triage.
    """

    target: str
    mode: PresetGuidance
    tests: int
    settled: SettledFailures
    score: int
    seconds: tuple[float, float]

    @property
    def unique(self) -> DifferentFailures:
        """How many different failures there are."""
        return unique(self.settled.failures)

    def as_json(self) -> dict[str, Any]:
        """Return the series as a JSON object."""
        bugs, failing = PAPERS_BUGS.get(self.mode, (None, None))
        return {
            **{name: getattr(self, name) for name in ("target", "mode", "tests", "score")},
            **self.settled.as_json(),
            "seconds": {"tests": self.seconds[0], "triage": self.seconds[1]},
            "paper": {"bugs": bugs, "failing_tests": failing, "days": 2},
        }


def measure(
    pools: SeriesPools,
    generator_options: HirfuzzOptions,
    support: Support,
    tests: int,
    patience: float = 300.0,
    watch: Watch = unwatched,
) -> FailureSeries:
    """Run `tests` tests under the options' guidance, confirm every violation in a fresh worker, and triage the bugs.

    Triage takes at most `patience` seconds; bugs that remain then are counted as untriaged.
    """
    plan, begin = pools.plan, time.monotonic()
    producer = Hirfuzz(generator_options, support)
    book = FailureLog(pools)
    rng_of = partial(stream, plan.seed, "bench", "failures", generator_options.guidance)
    for judged in run_series(pools, producer, make_oracle(plan, {}), tests, rng_of):
        book.take(judged)
        watch(f"{plan.target}, guidance {generator_options.guidance}", judged.test + 1, tests)
    tested = time.monotonic()
    settled = book.settle(patience, watch)
    return FailureSeries(
        target=plan.target,
        mode=generator_options.guidance,
        tests=tests,
        settled=settled,
        score=producer.coverage.score,
        seconds=(tested - begin, time.monotonic() - tested),
    )
