"""The three experiments of HIRFUZZ, sections 5.4 and 5.5, each beside the figures of the paper."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from evaluation.hirfuzz import diversity, failures, invalid
from evaluation.hirfuzz.diversity import Diversity
from evaluation.hirfuzz.failures import FailureSeries
from evaluation.hirfuzz.invalid import InvalidSeries
from evaluation.measures import Watch, unwatched
from evaluation.series import probed_plan, series_pools
from miscompile.base.errors import UsageError
from miscompile.engine.plan import Plan
from miscompile.environments.resolve import versions_of
from miscompile.ops.support import Support
from miscompile.producers.hirfuzz.producer import HirfuzzOptions

Part = Literal["diversity", "invalid", "failures"]


@dataclass(frozen=True, slots=True)
class HirfuzzSettings:
    """The settings of the experiments.

    Diversity: `repetitions` times `graphs` graphs of `nodes` operators. Invalid programs: `programs` of them on each of
    `targets`. Failures: `tests` tests of `test_nodes` operators on each target, with and without guidance, and at most
    `patience` seconds of triage for each of these. `limit_seconds` limits one run, `probe_seconds` the probing of a
    target's support.
    """

    part: Part
    targets: tuple[str, ...] = ()
    graphs: int = 200
    nodes: int = 100
    repetitions: int = 10
    programs: int = 170
    tests: int = 1000
    test_nodes: int = 10
    seed: int = 0
    workers: int = 1
    limit_seconds: float = 30.0
    patience: float = 300.0
    probe_seconds: float = 120.0


@dataclass(frozen=True, slots=True)
class HirfuzzFigures:
    """The figures of one experiment; those of the others are None or empty. `versions` are those of each target."""

    settings: HirfuzzSettings
    versions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    diversity: Diversity | None = None
    invalid: tuple[InvalidSeries, ...] = ()
    failures: tuple[FailureSeries, ...] = ()
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        """Return everything as a JSON object."""
        return {
            "table": f"hirfuzz-{self.settings.part}",
            "settings": asdict(self.settings),
            "versions": {target: dict(found) for target, found in self.versions.items()},
            "seconds": self.seconds,
            "diversity": None if self.diversity is None else self.diversity.as_json(),
            "invalid": [series.as_json() for series in self.invalid],
            "failures": [series.as_json() for series in self.failures],
        }


def run(settings: HirfuzzSettings, watch: Watch = unwatched) -> Iterator[HirfuzzFigures]:
    """Measure repetition by repetition or target by target; yield all figures so far after each of them.

    Raises UsageError when a target cannot run, or when there is none for an experiment that needs one.
    """
    begin = time.monotonic()
    if settings.part == "diversity":
        steps = _diversity(settings, watch)
    elif settings.targets:
        steps = _on_targets(settings, watch)
    else:
        raise UsageError("name the compilers to measure with --targets, as in --targets onnxruntime,toy")
    for figures in steps:
        yield replace(figures, seconds=time.monotonic() - begin)


def _diversity(settings: HirfuzzSettings, watch: Watch) -> Iterator[HirfuzzFigures]:
    """Yield the figures after each repetition; no compiler runs."""
    for found in diversity.measure(
        HirfuzzOptions(nodes=settings.nodes), settings.graphs, settings.repetitions, settings.seed,
        workers=settings.workers, watch=watch,
    ):  # fmt: skip
        yield HirfuzzFigures(settings, diversity=found)


def _on_targets(settings: HirfuzzSettings, watch: Watch) -> Iterator[HirfuzzFigures]:
    """Yield the figures after each series of a target."""
    figures = HirfuzzFigures(settings, {target: versions_of(target) for target in settings.targets})
    for target in settings.targets:
        plan, support = probed_plan(
            target, watch, seed=settings.seed, workers=settings.workers, limit_seconds=settings.limit_seconds,
            probe_seconds=settings.probe_seconds,
        )  # fmt: skip
        if settings.part == "invalid":
            with series_pools(plan) as pools:
                found = invalid.measure(pools, support, settings.programs, watch)
            figures = replace(figures, invalid=(*figures.invalid, found))
            yield figures
            continue
        for series in _failures(settings, plan, support, watch):
            figures = replace(figures, failures=(*figures.failures, series))
            yield figures


def _failures(settings: HirfuzzSettings, plan: Plan, support: Support, watch: Watch) -> Iterator[FailureSeries]:
    """Yield a series with guidance, and one without."""
    usual = HirfuzzOptions()
    opsets = tuple(opset for opset in usual.opsets if opset in plan.opsets) or plan.opsets
    for mode in failures.MODES:
        generator_options = replace(usual, nodes=settings.test_nodes, guidance=mode, opsets=opsets)
        with series_pools(plan) as pools:
            yield failures.measure(pools, generator_options, support, settings.tests, settings.patience, watch)
