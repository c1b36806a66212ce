"""The bench of OATest: its splicing held against its own claims, and its ablations, each beside the paper's figures."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from miscompile.base.errors import UsageError
from miscompile.base.rng import stream
from miscompile.bench import ablations, libraries, splicing
from miscompile.bench.ablations import ArmSeries, compared
from miscompile.bench.hirfuzz import laboratory
from miscompile.bench.libraries import Libraries
from miscompile.bench.measures import Watch, unwatched
from miscompile.bench.sources import harvested, made, node_programs, pairs_in, plain_graphs
from miscompile.bench.splicing import Splicing
from miscompile.bench.tracing import Traced
from miscompile.core.case import Case
from miscompile.engine.coordinator import probe_support
from miscompile.engine.plan import Plan
from miscompile.environments.resolve import versions_of
from miscompile.ops.support import Support
from miscompile.patterns.shipped import shipped_patterns
from miscompile.producers.synthesis.options import OatestOptions
from miscompile.targets.registry import parse_target

Part = Literal["splicing", "ablation", "all"]
PARTS: tuple[Part, ...] = ("splicing", "ablation", "all")


@dataclass(frozen=True, slots=True)
class Options:
    """What to measure on each of `targets`, and how much of it.

    Splicing: `syntheses` programs with the patterns that ship with the tool. Ablation: `tests` tests in each setting,
    and at most `patience` seconds of triage for each of these; the patterns are cut from the models of `pairs` (a path
    that `miscompile harvest --keep` has filled), else from `programs` generated programs and from `cases` of onnx's
    node cases (None: all), `each` for every pass that fires. The trigger rate is measured on `watched` programs of each
    series. `mutations` is the share of patterns that are planted in an uncommon setting. `limit_seconds` limits one
    run, `probe_seconds` how long a target is asked what it takes.
    """

    targets: tuple[str, ...] = ()
    part: Part = "all"
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

    def wants(self, part: Part) -> bool:
        """Tell whether a part is asked for."""
        return self.part in (part, "all")


@dataclass(frozen=True, slots=True)
class Results:
    """What was measured, target by target. `versions` are those of each; of what `libraries` each target's hold."""

    options: Options
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
            "bench": "oatest",
            "options": asdict(self.options),
            "versions": {target: dict(found) for target, found in self.versions.items()},
            "seconds": self.seconds,
            "splicing": [found.as_json() for found in self.splicing],
            "libraries": {target: found.as_json() for target, found in self.libraries.items()},
            "ablation": [series.as_json() for series in self.ablation],
            "ratios": {target: compared(self.of(target)) for target in targets},
        }


def run(options: Options, watch: Watch = unwatched) -> Iterator[Results]:
    """Measure target by target and part by part; yield all results so far from time to time, and after each series.

    Raises UsageError when there is no target or one cannot run, and when `pairs` holds none.
    """
    begin = time.monotonic()
    if not options.targets:
        raise UsageError("name the compilers to measure with --targets, as in --targets onnxruntime,tvm")
    if options.pairs is not None and options.wants("ablation"):
        pairs_in(Path(options.pairs))  # hours of other measurements are not to end in an error
    results = Results(options, {target: versions_of(target) for target in options.targets})
    for target in options.targets:
        for more in _of_target(options, target, results, watch):
            results = replace(more, seconds=time.monotonic() - begin)
            yield results


def _of_target(options: Options, target: str, results: Results, watch: Watch) -> Iterator[Results]:
    """Yield the results with those of one target added."""
    plan = Plan(
        target, seed=options.seed, limit_seconds=options.limit_seconds, workers=options.workers,
        probe_seconds=options.probe_seconds, quarantine=False,
    )  # fmt: skip
    watch(f"{target}, which operators it takes", 0, 1)
    support = probe_support(plan, target)
    watch(f"{target}, which operators it takes", 1, 1)
    generator_options = replace(plan.oatest_options({}, ""), variants=1, mutations=options.mutations)
    if options.wants("splicing"):
        before = results.splicing
        producer = Traced(generator_options, support, shipped_patterns(), parse_target(target).about)
        with laboratory(plan) as lab:
            for found in splicing.measure(lab, producer, options.syntheses, options.watched, watch):
                results = replace(results, splicing=(*before, found))
                yield results
    if options.wants("ablation"):
        library = _libraries(options, plan, support, watch)
        results = replace(results, libraries={**results.libraries, target: library})
        yield results
        for arm in ablations.arms(library, plain_graphs(support, plan.opsets, plan.seed), plan.seed):
            with laboratory(plan) as lab:
                series = ablations.measure(
                    lab, arm, generator_options, support, options.tests, options.watched, options.patience, watch
                )
            results = replace(results, ablation=(*results.ablation, series))
            yield results


def node_programs_of(options: Options) -> list[Case]:
    """Return the node cases of onnx that patterns are cut from: all that a seed can hold, or as many as are asked for.

    Which these are follows from the seed of the bench.
    """
    programs = node_programs()
    if options.cases is None:
        return programs
    return stream(options.seed, "bench", "cases").sample(programs, min(options.cases, len(programs)))


def _libraries(options: Options, plan: Plan, support: Support, watch: Watch) -> Libraries:
    """Cut the patterns of the ablation. Raises UsageError when there is no program on which a pass fires."""
    target = plan.target
    with laboratory(plan) as lab:
        if options.pairs is None:
            more = node_programs_of(options)
            total = options.programs + len(more)
            programs = made(target, lab.second, support, plan.opsets, options.programs, options.seed, more)
        else:
            pairs = pairs_in(Path(options.pairs))
            total, programs = len({pair.model for pair in pairs}), harvested(pairs, options.seed)
        found = libraries.build(
            programs, target, lab.pool, options.each, options.seed,
            lambda done, _: watch(f"{target}, programs that passes may fire on", done, total),
        )  # fmt: skip
    if not found.cuts:
        raise UsageError(f"no pass of {target} is seen to fire on the programs, so there is no pattern to compare")
    return found
