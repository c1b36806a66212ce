"""Ablations of OATest (section 4.4): other patterns, and other seeds, with everything else as it is."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations
from typing import Any, Literal

from evaluation.failure_log import FailureLog, SettledFailures
from evaluation.measures import DifferentFailures, Watch, unique, unwatched
from evaluation.oatest.libraries import Libraries
from evaluation.oatest.splicing import ending_of
from evaluation.oatest.tracing import Traced
from evaluation.oatest.triggers import Sample, TriggerRate, intended_passes, sample_of, triggers
from evaluation.series import Judged, SeriesPools, run_series
from miscompile.base.rng import stream
from miscompile.core.outcome import Values
from miscompile.engine.wiring import make_oracle
from miscompile.ops.seed import Seed
from miscompile.ops.support import Support
from miscompile.patterns.extract import Whole
from miscompile.patterns.pattern import Pattern
from miscompile.producers.synthesis.options import Contexts, OatestOptions
from miscompile.targets.registry import parse_target

Group = Literal["patterns", "seeds"]


@dataclass(frozen=True, slots=True)
class PaperBugs:
    """Bugs that the paper found in this setting in 12 hours, of TVM and of ONNX Runtime."""

    tvm: int
    onnxruntime: int

    @property
    def ratio(self) -> float:
        """Bugs of both compilers, over those of the paper's own setting."""
        return (self.tvm + self.onnxruntime) / (PAPERS_OWN[0] + PAPERS_OWN[1])


PAPERS_OWN = (29, 13)
PAPERS: Mapping[str, PaperBugs] = {
    "own": PaperBugs(*PAPERS_OWN),
    "block": PaperBugs(14, 8),
    "subgraph": PaperBugs(20, 7),
    "whole": PaperBugs(11, 5),
    "random": PaperBugs(7, 3),
    "tests": PaperBugs(26, 10),
}
"""By arm; of patterns without any seed the paper says nothing."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One setting: which patterns, and where seeds come from. `contexts` are the seeds, where they are not generated.

    own: blocks for passes that work on blocks, subgraphs for the others, in generated seeds. block, subgraph, whole:
    always these. random: fragments of generated graphs. tests: the patterns of own, with the whole programs that they
    come from as seeds. alone: the same, each with nothing around it.
    """

    name: str
    group: Group
    patterns: tuple[Pattern, ...]
    seeds: Contexts = "generated"
    contexts: tuple[Seed, ...] = ()

    @property
    def operators(self) -> float:
        """Mean number of operators of a pattern."""
        return sum(len(one.operators) for one in self.patterns) / max(1, len(self.patterns))


def arms(libraries: Libraries, graphs: Iterator[Whole], seed: int) -> Iterator[Arm]:
    """Yield the settings; the first is what all others are compared with. `graphs` are for no pass."""
    own = libraries.own
    yield Arm("own", "patterns", own)
    yield Arm("block", "patterns", libraries.blocks)
    yield Arm("subgraph", "patterns", libraries.subgraphs)
    yield Arm("whole", "patterns", libraries.wholes)
    yield Arm("random", "patterns", libraries.at_random(graphs, stream(seed, "bench", "fragments")))
    yield Arm("tests", "seeds", own, "patterns", libraries.tests)
    yield Arm("alone", "seeds", own, "none")


@dataclass(frozen=True, slots=True)
class ArmSeries:
    """The result of `tests` tests in one setting on one target.

    `endings` counts the outcomes of the unoptimised builds. `passes`, `sets` and `pairs` count the different passes
    that were observed to change a program, sets of passes that changed one, and pairs in these sets, in `observed`
    programs; a rule that runs in a frame counts as the frame. `used` counts the patterns that were placed.
    `seconds` are of the wall clock: of the tests with the confirming of failures, of triage, of the trigger rate.
    """

    target: str
    arm: str
    group: Group
    patterns: int
    operators: float
    used: int
    tests: int
    endings: Mapping[str, int]
    observed: int
    passes: int
    sets: int
    pairs: int
    settled: SettledFailures
    trigger: TriggerRate | None
    seconds: tuple[float, float, float]

    @property
    def valid(self) -> float:
        """Share of the tests that are built without optimisation, and run."""
        return self.endings.get("values", 0) / self.tests if self.tests else 0.0

    @property
    def unique(self) -> DifferentFailures:
        """How many different failures there are."""
        return unique(self.settled.failures)

    def thousand(self, count: int) -> float:
        """Return `count` per thousand tests."""
        return 1000 * count / self.tests if self.tests else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the series as a JSON object."""
        names = ("target", "arm", "group", "patterns", "operators", "used", "tests", "valid", "observed", "passes")
        paper = PAPERS.get(self.arm)
        return {
            **{name: getattr(self, name) for name in names},
            "endings": dict(self.endings),
            "sets": {"count": self.sets, "per_thousand": self.thousand(self.sets)},
            "pairs": {"count": self.pairs, "per_thousand": self.thousand(self.pairs)},
            "trigger": None if self.trigger is None else self.trigger.as_json(),
            **self.settled.as_json(),
            "seconds": dict(zip(("tests", "triage", "trigger"), self.seconds, strict=True)),
            "paper": paper and {"tvm": paper.tvm, "onnxruntime": paper.onnxruntime, "ratio": paper.ratio},
        }


@dataclass(slots=True)
class _ObservedPasses:
    """The passes that were seen to change programs, and which of them together."""

    observed: int = 0
    passes: set[str] = field(default_factory=set)
    sets: set[frozenset[str]] = field(default_factory=set)
    pairs: set[tuple[str, str]] = field(default_factory=set)

    def take(self, judged: Judged) -> None:
        """Count the passes that the observed run of a test reports; a run without values reports none."""
        for run, outcome in zip(judged.runs, judged.outcomes, strict=True):
            if run.build.observe and isinstance(outcome, Values):
                names = frozenset(outcome.observations.passes)
                self.observed += 1
                self.passes |= names
                self.sets.add(names)
                self.pairs.update(combinations(sorted(names), 2))


def measure(
    pools: SeriesPools,
    arm: Arm,
    generator_options: OatestOptions,
    support: Support,
    tests: int,
    watched: int,
    patience: float = 300.0,
    watch: Watch = unwatched,
) -> ArmSeries:
    """Run a series of `tests` in one setting, as a campaign does but with no pass switched off, and triage its bugs.

    Triage takes at most `patience` seconds; the trigger rate is measured on `watched` of the programs.
    """
    plan, begin, what = pools.plan, time.monotonic(), f"{pools.plan.target}, {arm.group}: {arm.name}"
    about = parse_target(plan.target).about
    generator_options = replace(generator_options, seeds=arm.seeds, variants=1, observe=1.0)
    producer = Traced(generator_options, support, arm.patterns, about, arm.contexts)
    book, seen, endings, used = FailureLog(pools), _ObservedPasses(), Counter[str](), set[str]()
    sample: Sample = sample_of(watched, stream(plan.seed, "bench", "watched", arm.name))
    rng_of = partial(stream, plan.seed, "bench", "ablation", arm.name)
    for judged in run_series(pools, producer, make_oracle(plan, {}), tests, rng_of):
        producer.trace(judged.case)
        endings[ending_of(judged.outcomes[0])] += 1
        used.update(judged.case.recipe["motifs"])
        seen.take(judged)
        book.take(judged)
        if intended_passes(judged.case):
            sample.offer(judged.case)
        watch(what, judged.test + 1, tests)
    tested = time.monotonic()
    settled = book.settle(patience, watch)
    triaged = time.monotonic()
    trigger = triggers(sample.cases, plan.target, pools.second, f"{what}, which passes fire", watch)
    seconds = (tested - begin, triaged - tested, time.monotonic() - triaged)
    return ArmSeries(
        plan.target, arm.name, arm.group, len(arm.patterns), arm.operators, len(used), tests, dict(endings),
        seen.observed, len(seen.passes), len(seen.sets), len(seen.pairs), settled, trigger, seconds,
    )  # fmt: skip


def compared(series: Sequence[ArmSeries]) -> dict[str, dict[str, float]]:
    """Return for each arm what it reached in each respect, over what `own` did; nothing where `own` has none."""
    base = next((one for one in series if one.arm == "own"), None)
    if base is None:
        return {}
    found: dict[str, dict[str, float]] = {}
    for one in series:
        pairs = {
            "signatures": (one.unique.by_signature, base.unique.by_signature),
            "sets": (one.sets, base.sets),
            "pairs": (one.pairs, base.pairs),
            "passes": (one.passes, base.passes),
        }
        found[one.arm] = {name: value / own for name, (value, own) in pairs.items() if own}
    return found
