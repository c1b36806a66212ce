"""A series of tests on one target: proposed, run in workers, judged, and confirmed when they fail."""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

from evaluation.measures import Watch
from miscompile.core.case import Case
from miscompile.core.examination import conclude
from miscompile.core.outcome import Outcome
from miscompile.core.pool import Pool
from miscompile.core.ports import Oracle, Producer
from miscompile.core.run import Run
from miscompile.core.verdict import Verdict
from miscompile.engine.coordinator import probe_support
from miscompile.engine.plan import Plan
from miscompile.engine.wiring import make_pool
from miscompile.ops.support import Support

AHEAD = 3
"""Tests that are with the workers while one is judged."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A test with what came of it; `outcomes[i]` came of `runs[i]`. The verdict is never Needs."""

    test: int
    case: Case
    runs: tuple[Run, ...]
    outcomes: tuple[Outcome, ...]
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class SeriesPools:
    """The workers of a series: `pool` for the tests, `second` for second rounds and for confirming failures."""

    plan: Plan
    pool: Pool
    second: Pool


def probed_plan(
    target: str, watch: Watch, *, seed: int, workers: int, limit_seconds: float, probe_seconds: float
) -> tuple[Plan, Support]:
    """Return the plan of all series on a target, without steering past known bugs, and what the target takes."""
    plan = Plan(
        target, seed=seed, limit_seconds=limit_seconds, workers=workers, probe_seconds=probe_seconds, steer=False
    )
    watch(f"{target}, which operators it takes", 0, 1)
    support = probe_support(plan, target)
    watch(f"{target}, which operators it takes", 1, 1)
    return plan, support


@contextmanager
def series_pools(plan: Plan) -> Iterator[SeriesPools]:
    """Open the workers of one series. Raises UsageError when the target cannot be loaded."""
    with make_pool(plan, workers=plan.workers) as pool, make_pool(plan) as second:
        yield SeriesPools(plan, pool, second)


def run_series(
    pools: SeriesPools, producer: Producer, oracle: Oracle, tests: int, rng_of: Callable[[int], Random]
) -> Iterator[Judged]:
    """Yield `tests` tests in order; `rng_of` gives the random stream of each. A fixed number is always ahead."""
    waiting: deque[tuple[int, Case, tuple[Run, ...], int]] = deque()
    done: dict[int, list[Outcome]] = {}
    number = 0
    while number < tests or waiting:
        while number < tests and len(waiting) < AHEAD:
            rng = rng_of(number)
            case = producer.propose(rng)
            runs = oracle.plan(case, rng)
            waiting.append((number, case, runs, pools.pool.submit(runs)))
            number += 1
        test, case, runs, ticket = waiting.popleft()
        while ticket not in done:
            done.update(pools.pool.poll(pools.plan.limit_seconds))
        outcomes = tuple(done.pop(ticket))
        found = conclude(runs, outcomes, oracle, pools.second)
        producer.learn(case, outcomes, found.verdict)
        yield Judged(test, case, found.runs, found.outcomes, found.verdict)
