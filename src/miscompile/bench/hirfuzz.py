"""The bench of HIRFUZZ: its three measurements of section 5.4 and 5.5, each beside the paper's figures."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from miscompile.base.errors import UsageError
from miscompile.bench import broken, diversity, failures
from miscompile.bench.broken import BrokenSeries
from miscompile.bench.diversity import Diversity
from miscompile.bench.failures import FailureSeries
from miscompile.bench.measures import Watch, unwatched
from miscompile.bench.series import Laboratory
from miscompile.engine.coordinator import probe_support
from miscompile.engine.plan import Plan
from miscompile.engine.wiring import make_pool
from miscompile.environments.resolve import versions_of
from miscompile.producers.hirfuzz.producer import HirfuzzOptions

Part = Literal["diversity", "disruptive", "failures", "all"]
PARTS: tuple[Part, ...] = ("diversity", "disruptive", "failures", "all")


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure, and how much of it.

    Diversity: `repetitions` times `graphs` graphs of `nodes` operators. Disruptive mode: `broken` programs on each of
    `targets`. Failures: `tests` tests of `test_nodes` operators on each target, with and without guidance, and at most
    `patience` seconds of triage for each of these. `limit_seconds` limits one run, `probe_seconds` how long a target
    is asked what it takes.
    """

    targets: tuple[str, ...] = ()
    part: Part = "all"
    graphs: int = 200
    nodes: int = 100
    repetitions: int = 10
    broken: int = 170
    tests: int = 1000
    test_nodes: int = 10
    seed: int = 0
    workers: int = 1
    limit_seconds: float = 30.0
    patience: float = 300.0
    probe_seconds: float = 120.0

    def wants(self, part: Part) -> bool:
        """Tell whether a part is asked for."""
        return self.part in (part, "all")


@dataclass(frozen=True, slots=True)
class Results:
    """What was measured; parts that were not asked for are None or empty. `versions` are those of each target."""

    options: Options
    versions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    diversity: Diversity | None = None
    broken: tuple[BrokenSeries, ...] = ()
    failures: tuple[FailureSeries, ...] = ()
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Return everything as a JSON object."""
        return {
            "bench": "hirfuzz",
            "options": asdict(self.options),
            "versions": {target: dict(found) for target, found in self.versions.items()},
            "seconds": self.seconds,
            "diversity": None if self.diversity is None else self.diversity.as_json(),
            "disruptive": [series.as_json() for series in self.broken],
            "failures": [series.as_json() for series in self.failures],
        }


def run(options: Options, watch: Watch = unwatched) -> Iterator[Results]:
    """Measure part by part and target by target; yield all results so far after each of them.

    Raises UsageError when a target cannot run, or when there is none for a part that needs one.
    """
    begin = time.monotonic()
    needs_targets = options.wants("disruptive") or options.wants("failures")
    if needs_targets and not options.targets:
        raise UsageError("name the compilers to measure with --targets, as in --targets onnxruntime,toy")
    versions = {target: versions_of(target) for target in options.targets if needs_targets}
    results = Results(options, versions)
    if options.wants("diversity"):
        generator_options = HirfuzzOptions(nodes=options.nodes)
        for found in diversity.measure(
            generator_options, options.graphs, options.repetitions, options.seed, workers=options.workers, watch=watch
        ):
            results = replace(results, diversity=found, seconds=time.monotonic() - begin)
            yield results
    for target in options.targets if needs_targets else ():
        for more in _of_target(options, target, results, watch):
            results = replace(more, seconds=time.monotonic() - begin)
            yield results


def _of_target(options: Options, target: str, results: Results, watch: Watch) -> Iterator[Results]:
    """Yield the results with those of one target added, part by part."""
    plan = Plan(
        target, seed=options.seed, limit_seconds=options.limit_seconds, workers=options.workers,
        probe_seconds=options.probe_seconds, quarantine=False,
    )  # fmt: skip
    watch(f"{target}, which operators it takes", 0, 1)
    support = probe_support(plan, target)
    watch(f"{target}, which operators it takes", 1, 1)
    if options.wants("disruptive"):
        with laboratory(plan) as lab:
            found = broken.measure(lab, support, options.broken, watch)
        results = replace(results, broken=(*results.broken, found))
        yield results
    if options.wants("failures"):
        usual = HirfuzzOptions()
        opsets = tuple(opset for opset in usual.opsets if opset in plan.opsets) or plan.opsets
        for mode in failures.MODES:
            generator_options = replace(usual, nodes=options.test_nodes, guidance=mode, opsets=opsets)
            with laboratory(plan) as lab:
                series = failures.measure(lab, generator_options, support, options.tests, options.patience, watch)
            results = replace(results, failures=(*results.failures, series))
            yield results


@contextmanager
def laboratory(plan: Plan) -> Iterator[Laboratory]:
    """Open the workers of one series. Raises UsageError when the target cannot be loaded."""
    with make_pool(plan, workers=plan.workers) as pool, make_pool(plan) as second:
        yield Laboratory(plan, pool, second)
