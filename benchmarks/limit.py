"""The compiler's own limit: what its builds and runs of a campaign's models cost without the tool. Run as a script.

The models, inputs and builds are those that a lane would test. They are made beforehand, so that the measured process
only calls the target's adapter. No throughput of a campaign can exceed this limit.
"""

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass, field, replace
from multiprocessing import get_context

from miscompile.base.rng import stream
from miscompile.core.run import Run
from miscompile.engine.coordinator import probe_support
from miscompile.engine.plan import Plan
from miscompile.engine.wiring import make_oracle, make_producer
from miscompile.targets.about import Adapter
from miscompile.targets.registry import load_attribute, parse_target

CHUNK = 50
"""Tests that one child process measures; the death of the compiler loses so many at most."""


@dataclass(slots=True)
class Cost:
    """CPU microseconds of `runs` runs of one kind; `errors` of them ended with an exception."""

    runs: int = 0
    build_us: float = 0.0
    run_us: float = 0.0
    errors: int = 0


@dataclass(frozen=True, slots=True)
class Limit:
    """The figures: `costs` by the level of the build, `lost` tests that were in a process that died."""

    target: str
    seed: int
    tests: int
    lost: int
    us_per_test: float
    tests_per_second: float
    """Of one CPU that does nothing else."""
    costs: Mapping[str, Cost] = field(default_factory=dict)


def cases(plan: Plan, tests: int) -> list[tuple[Run, ...]]:
    """Return the runs of the plan's first tests, without steering."""
    producer, oracle = make_producer(plan, probe_support(plan, plan.target)), make_oracle(plan, {})
    found = []
    for index in range(tests):
        rng = stream(plan.seed, "lane", 0, 1, index)
        runs = oracle.plan(producer.propose(rng), rng)
        found.append(tuple(replace(run, build=replace(run.build, observe=False)) for run in runs))  # no logs
    return found


def measure(target: str, tests: Sequence[tuple[Run, ...]]) -> dict[str, Cost]:
    """Build and run all; return the cost by level. The first test is done twice, to load what is loaded lazily."""
    adapter: Adapter = load_attribute(parse_target(target).about.adapter)()
    costs: dict[str, Cost] = {}
    for run in tests[0]:
        _once(adapter, run, Cost())
    for runs in tests:
        for run in runs:
            _once(adapter, run, costs.setdefault(run.build.level, Cost()))
    return costs


def _once(adapter: Adapter, run: Run, cost: Cost) -> None:
    begin = time.process_time_ns()
    built = None
    try:
        session = adapter.build(run.case.program, run.build)
        built = time.process_time_ns()
        for feed in run.case.feeds:
            session.run(feed)
        del session
    except Exception:  # noqa: BLE001 - compilers raise anything, and an error is a result as well
        cost.errors += 1
    end = time.process_time_ns()
    cost.runs += 1
    cost.build_us += ((built or end) - begin) / 1000
    cost.run_us += (end - (built or end)) / 1000


def limit(plan: Plan, tests: int) -> Limit:
    """Measure `tests` tests of `plan` in children, one after another."""
    made = [runs for runs in cases(plan, tests) if not any(run.build.transform for run in runs)]
    costs: dict[str, Cost] = {}
    lost = 0
    for start in range(0, len(made), CHUNK):
        chunk = made[start : start + CHUNK]
        with ProcessPoolExecutor(1, get_context("fork")) as pool:
            try:
                found = pool.submit(measure, plan.target, chunk).result()
            except BrokenProcessPool:
                lost += len(chunk)
                continue
        for level, cost in found.items():
            into = costs.setdefault(level, Cost())
            into.runs += cost.runs
            into.build_us += cost.build_us
            into.run_us += cost.run_us
            into.errors += cost.errors
    if lost == len(made):
        raise SystemExit("limit: the compiler died in every chunk; try another --seed")
    us = sum(cost.build_us + cost.run_us for cost in costs.values()) / (len(made) - lost)
    return Limit(plan.target, plan.seed, len(made) - lost, lost, us, 1e6 / us, costs)


def report(found: Limit) -> None:
    """Print the figures for people."""
    print(f"{found.target}, seed {found.seed}, {found.tests} tests ({found.lost} lost in processes that died)")
    print(
        f"{found.us_per_test:8.0f} CPU us/test inside the compiler: at most {found.tests_per_second:.0f} tests/s a CPU"
    )
    for level, cost in sorted(found.costs.items()):
        build, run = cost.build_us / cost.runs, cost.run_us / cost.runs
        print(f"  {level:<10} {cost.runs:6} runs, build {build:8.0f} us, run {run:8.0f} us, {cost.errors} errors")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="onnxruntime")
    parser.add_argument("--tests", type=int, default=500)
    parser.add_argument("--nodes", type=int, default=10, help="operators aimed at in a graph")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--producer", action="append", default=[], help="spec of a producer instead")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    plan = Plan(given.target, seed=given.seed, nodes=given.nodes, producers=tuple(given.producer))
    found = limit(plan, given.tests)
    if given.json:
        print(json.dumps(asdict(found), indent=2))
    else:
        report(found)


if __name__ == "__main__":
    main()
