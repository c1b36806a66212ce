"""Tests a second of a real campaign, and where its CPU time goes. Run as a script; README.md tells how to read it."""

import argparse
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from platformdirs import user_cache_path

from cpu_tree import cpu_by_role, difference
from miscompile.base.errors import MiscompileError
from miscompile.base.rng import stream
from miscompile.core.events import Event, Progress
from miscompile.engine.coordinator import fuzz, probe_support
from miscompile.engine.plan import Plan
from miscompile.engine.wiring import make_oracle, make_producer
from miscompile.graph.emit import emit
from miscompile.graph.read import read
from miscompile.targets.registry import parse_target, versions
from nnsmith_peer import PeerFigures, measure

PARTS = ("generate", "emit", "transfer", "compare", "compiler", "other")
REPLAYED = 300
"""Cases that are made again to learn which share of generation is emission."""

_SPARE = 600.0
"""Seconds that the campaign itself may take beyond the measurement; never reached unless the lanes do nothing."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The result. `us` and `shares` have the keys PARTS: CPU microseconds a test, and shares of all CPU time.

    `compiler_share_of_testing` leaves triage out of all CPU time. `cpu_seconds` is by role; `counters` are the lanes'
    own, both within the `seconds` measured. `probe_seconds`, `start_seconds` (until the first test is done) and
    `outside_cpu_seconds` lie outside of them.
    """

    target: str
    versions: Mapping[str, str]
    nodes: int
    lanes: int
    seed: int
    seconds: float
    tests: int
    tests_per_second: float
    cpu_us_per_test: float
    us: Mapping[str, float]
    shares: Mapping[str, float]
    compiler_share_of_testing: float
    cpu_seconds: Mapping[str, float]
    counters: Mapping[str, int]
    probe_seconds: float
    start_seconds: float
    outside_cpu_seconds: float


@dataclass(slots=True)
class _Moment:
    """The counts at one moment."""

    at: float
    counters: dict[str, int]
    cpu: dict[str, float]


class Stopwatch:
    """A listener that measures for `seconds`, from `after` seconds after the first test on, then ends the campaign."""

    def __init__(self, seconds: float, after: float = 0.0) -> None:
        self.seconds, self.after = seconds, after
        self.first: float | None = None
        self.begin: _Moment | None = None
        self.end: _Moment | None = None

    def on(self, event: Event) -> None:
        """Look at the clock at every report."""
        if not isinstance(event, Progress) or self.end is not None or not event.counters.get("tests"):
            return
        now = time.monotonic()
        if self.first is None:
            self.first = now
        if now - self.first < self.after:
            return
        if self.begin is None:
            self.begin = _Moment(now, dict(event.counters), cpu_by_role())
        elif now - self.begin.at >= self.seconds and event.counters["tests"] > self.begin.counters["tests"]:
            self.end = _Moment(now, dict(event.counters), cpu_by_role())
            os.kill(os.getpid(), signal.SIGINT)  # as Ctrl-C: the lanes stop, nothing more is reduced


def campaign(plan: Plan, seconds: float, after: float = 0.0) -> Figures:
    """Run `plan` until `seconds` have been measured, which begin `after` seconds after the first test."""
    started = time.monotonic()
    probe_support(plan, plan.target)
    probed = time.monotonic() - started
    before, started = _cpu_of_ended(), time.monotonic()
    watch = Stopwatch(seconds, after)
    try:
        fuzz(plan, [watch])
    except KeyboardInterrupt:
        if watch.end is None:
            raise
    if watch.first is None or watch.begin is None or watch.end is None:
        raise SystemExit("the campaign ended before it could be measured")
    spent = difference(watch.end.cpu, watch.begin.cpu)
    counted = {name: int(number) for name, number in difference(watch.end.counters, watch.begin.counters).items()}
    us = _split(counted, spent, emission_share(plan))
    total = sum(spent.values())
    elapsed = watch.end.at - watch.begin.at
    return Figures(
        target=plan.target,
        versions=versions(parse_target(plan.target).about),
        nodes=plan.nodes or 0,
        lanes=plan.workers,
        seed=plan.seed,
        seconds=elapsed,
        tests=counted["tests"],
        tests_per_second=counted["tests"] / elapsed,
        cpu_us_per_test=1e6 * total / counted["tests"],
        us={part: us[part] / counted["tests"] for part in PARTS},
        shares={part: us[part] / (1e6 * total) for part in PARTS},
        compiler_share_of_testing=us["compiler"] / (1e6 * (total - spent["triage"])),
        cpu_seconds=spent,
        counters=counted,
        probe_seconds=probed,
        start_seconds=watch.first - started,
        outside_cpu_seconds=_cpu_of_ended() - before - total,
    )


def _cpu_of_ended() -> float:
    """Return CPU seconds of this process and of all its processes that have ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _split(counted: Mapping[str, int], spent: Mapping[str, float], emission: float) -> dict[str, float]:
    """Return CPU microseconds by part; `other` is what no part accounts for."""
    compiler, generated = counted["compiler_cpu_us"], counted["generate_us"]
    known = {
        "generate": generated * (1 - emission),
        "emit": generated * emission,
        "transfer": counted["transfer_us"] + 1e6 * spent["workers"] - compiler,
        "compare": counted["judge_us"],
        "compiler": compiler,
    }
    return {**known, "other": 1e6 * sum(spent.values()) - sum(known.values())}


def emission_share(plan: Plan) -> float:
    """Make the campaign's first cases again and emit their models once more; return emission's share of the time."""
    producer, oracle = make_producer(plan, probe_support(plan, plan.target)), make_oracle(plan, {})
    making = emitting = 0.0
    for index in range(REPLAYED):
        begin = time.thread_time()
        rng = stream(plan.seed, "lane", 0, 1, index)
        case = producer.propose(rng)
        oracle.plan(case, rng)
        making += time.thread_time() - begin
        model = read(case.program.payload)
        begin = time.thread_time()
        emit(model)
        emitting += time.thread_time() - begin
    return min(1.0, emitting / making)


def report(figures: Figures, peer: PeerFigures | None, write: Callable[[str], object] = print) -> None:
    """Print figures for people."""
    f = figures
    made = " ".join(f"{name} {version}" for name, version in f.versions.items())
    write(f"{f.target} ({made}), {f.nodes} nodes, {f.lanes} lanes, seed {f.seed}")
    write(f"{f.tests_per_second:8.1f} tests/s  ({f.tests} tests in {f.seconds:.1f} s)")
    write(f"{f.cpu_us_per_test:8.0f} CPU us/test, of which")
    for part in PARTS:
        write(f"{f.us[part]:8.0f}   {part:<10} {f.shares[part]:6.1%}")
    write(f"share of the compiler without triage: {f.compiler_share_of_testing:.1%}")
    write("CPU seconds: " + ", ".join(f"{role} {seconds:.1f}" for role, seconds in f.cpu_seconds.items()))
    write(
        f"not counted: probe {f.probe_seconds:.1f} s (0 when cached), start {f.start_seconds:.1f} s, "
        f"{f.outside_cpu_seconds:.1f} CPU s before and after"
    )
    if peer is not None:
        write(
            f"NNSmith 0.1.0: {peer.tests_per_second:.1f} tests/s  ({peer.tests} tests in {peer.seconds:.0f} s, "
            f"{peer.processes} processes, {peer.reported} reports, {peer.failed} models not made)"
        )
        write(f"ratio: {f.tests_per_second / peer.tests_per_second:.1f}")


def as_json(figures: Figures, peer: PeerFigures | None) -> dict[str, Any]:
    """Return everything as one JSON object; `nnsmith` and `ratio` are null without NNSmith."""
    ratio = figures.tests_per_second / peer.tests_per_second if peer else None
    return {**asdict(figures), "nnsmith": peer.as_json() if peer else None, "ratio": ratio}


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="onnxruntime")
    parser.add_argument("--seconds", type=float, default=60.0, help="measured seconds of the campaign, and of NNSmith")
    parser.add_argument("--after", type=float, default=0.0, help="seconds of the campaign before the measured ones")
    parser.add_argument("--nodes", type=int, default=10, help="operators aimed at in a graph")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="lanes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--producer", action="append", default=[], help="spec of a producer instead")
    parser.add_argument("--nnsmith", action="store_true", help="run NNSmith 0.1.0 afterwards, with as many processes")
    parser.add_argument("--venv", type=Path, default=user_cache_path("miscompile") / "benchmarks" / "nnsmith")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def main() -> None:
    """Measure and print."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background of a shell ignores it
    given = options()
    with TemporaryDirectory() as name:
        folder = Path(name)
        plan = Plan(
            given.target,
            seconds=given.after + given.seconds + _SPARE,
            seed=given.seed,
            out=folder / "campaign",
            workers=given.workers,
            nodes=given.nodes,
            producers=tuple(given.producer),
        )
        try:
            figures = campaign(plan, given.seconds, given.after)
        except MiscompileError as error:
            sys.exit(f"throughput: {error}")
        peer = None
        if given.nnsmith:
            seconds = max(1, round(given.seconds))
            peer = measure(given.venv, folder / "nnsmith", seconds, given.nodes, given.workers)
    if given.json:
        print(json.dumps(as_json(figures, peer), indent=2))
    else:
        report(figures, peer)


if __name__ == "__main__":
    main()
