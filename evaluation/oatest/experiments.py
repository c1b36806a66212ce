"""The experiments of OATest: splicing held against its own claims, and ablations, each beside the paper's figures."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from evaluation.measures import Watch, unwatched
from evaluation.oatest import ablations, libraries, splicing
from evaluation.oatest.ablations import ArmSeries, compared
from evaluation.oatest.libraries import Libraries
from evaluation.oatest.sources import harvested, made, node_programs, pairs_in, plain_graphs
from evaluation.oatest.splicing import Splicing
from evaluation.oatest.tracing import Traced
from evaluation.series import probed_plan, series_pools
from miscompile.base.errors import UsageError
from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.engine.plan import Plan
from miscompile.environments.resolve import versions_of
from miscompile.ops.support import Support
from miscompile.patterns.shipped import shipped_patterns
from miscompile.producers.synthesis.options import OatestOptions
from miscompile.targets.registry import parse_target

Part = Literal["splicing", "ablation"]


@dataclass(frozen=True, slots=True)
class OatestSettings:
    """The settings of the experiments, which run on each of `targets`.

    Splicing: `syntheses` programs with the patterns that ship with the tool. Ablation: `tests` tests in each setting,
    and at most `patience` seconds of triage for each of these; the patterns are cut from the models of `pairs` (a path
    that `miscompile harvest --keep` has filled), else from `programs` generated programs and from `cases` of onnx's
    node cases (None: all), `each` for every pass that fires. The trigger rate is measured on `watched` programs of each
    series. `mutations` is the share of patterns that are planted in an uncommon setting. `limit_seconds` limits one
    run, `probe_seconds` the probing of a target's support.
    """

    part: Part
    targets: tuple[str, ...] = ()
    syntheses: int = 5000
    watched: int = 1000
    tests: int = 1000
    programs: int = 300
    cases: int | None = None
    each: int = 3
    pairs: str | None = None
    mutations: float = OatestOptions().mutations
    seed: int = 0
    workers: int = 1
    limit_seconds: float = 30.0
    patience: float = 300.0
    probe_seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class OatestFigures:
    """The figures, target by target. `versions` are those of each target, `libraries` the figures of its libraries."""

    settings: OatestSettings
    versions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    splicing: tuple[Splicing, ...] = ()
    libraries: Mapping[str, Libraries] = field(default_factory=dict)
    ablation: tuple[ArmSeries, ...] = ()
    seconds: float = 0.0

    def of(self, target: str) -> tuple[ArmSeries, ...]:
        """Return the series of a target."""
        return tuple(series for series in self.ablation if series.target == target)

    def as_json(self) -> dict[str, Any]:
        """Return everything as a JSON object."""
        targets = dict.fromkeys(series.target for series in self.ablation)
        return {
            "table": f"oatest-{self.settings.part}",
            "settings": asdict(self.settings),
            "versions": {target: dict(found) for target, found in self.versions.items()},
            "seconds": self.seconds,
            "splicing": [found.as_json() for found in self.splicing],
            "libraries": {target: found.as_json() for target, found in self.libraries.items()},
            "ablation": [series.as_json() for series in self.ablation],
            "ratios": {target: compared(self.of(target)) for target in targets},
        }


def run(settings: OatestSettings, watch: Watch = unwatched) -> Iterator[OatestFigures]:
    """Measure target by target and part by part; yield all results so far from time to time, and after each series.

    Raises UsageError when there is no target or one cannot run, and when `pairs` holds none.
    """
    begin = time.monotonic()
    if not settings.targets:
        raise UsageError("name the compilers to measure with --targets, as in --targets onnxruntime,tvm")
    if settings.pairs is not None and settings.part == "ablation":
        pairs_in(Path(settings.pairs))  # hours of other measurements are not to end in an error
    results = OatestFigures(settings, {target: versions_of(target) for target in settings.targets})
    for target in settings.targets:
        for more in _of_target(settings, target, results, watch):
            results = replace(more, seconds=time.monotonic() - begin)
            yield results


def _of_target(settings: OatestSettings, target: str, results: OatestFigures, watch: Watch) -> Iterator[OatestFigures]:
    """Yield the results with those of one target added."""
    plan, support = probed_plan(
        target, watch, seed=settings.seed, workers=settings.workers, limit_seconds=settings.limit_seconds,
        probe_seconds=settings.probe_seconds,
    )  # fmt: skip
    generator_options = replace(plan.options_of("oatest", {}, ""), variants=1, mutations=settings.mutations)
    if settings.part == "splicing":
        before = results.splicing
        producer = Traced(generator_options, support, shipped_patterns(), parse_target(target).about)
        with series_pools(plan) as pools:
            for found in splicing.measure(pools, producer, settings.syntheses, settings.watched, watch):
                results = replace(results, splicing=(*before, found))
                yield results
    if settings.part == "ablation":
        library = _libraries(settings, plan, support, watch)
        results = replace(results, libraries={**results.libraries, target: library})
        yield results
        for arm in ablations.arms(library, plain_graphs(support, plan.opsets, plan.seed), plan.seed):
            with series_pools(plan) as pools:
                series = ablations.measure(
                    pools, arm, generator_options, support, settings.tests, settings.watched, settings.patience, watch
                )
            results = replace(results, ablation=(*results.ablation, series))
            yield results


def node_programs_of(settings: OatestSettings) -> list[Case]:
    """Return the node cases of onnx that patterns are cut from: all that a seed can hold, or as many as are asked for.

    Which these are follows from the seed of the table.
    """
    programs = node_programs()
    if settings.cases is None:
        return programs
    return stream(settings.seed, "bench", "cases").sample(programs, min(settings.cases, len(programs)))


def _libraries(settings: OatestSettings, plan: Plan, support: Support, watch: Watch) -> Libraries:
    """Cut the patterns of the ablation. Raises UsageError when there is no program on which a pass fires."""
    target = plan.target
    with series_pools(plan) as pools:
        if settings.pairs is None:
            more = node_programs_of(settings)
            total = settings.programs + len(more)
            programs = made(target, pools.second, support, plan.opsets, settings.programs, settings.seed, more)
        else:
            pairs = pairs_in(Path(settings.pairs))
            total, programs = len({pair.model for pair in pairs}), harvested(pairs, settings.seed)
        found = libraries.build(
            programs, target, pools.pool, settings.each, settings.seed,
            lambda done, _: watch(f"{target}, programs that passes may fire on", done, total),
        )  # fmt: skip
    if not found.pairs:
        raise UsageError(f"no pass of {target} is seen to fire on the programs, so there is no pattern to compare")
    return found
