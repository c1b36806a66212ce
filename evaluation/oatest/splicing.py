"""Splicing: are synthesised programs valid, is the pattern really inside the seed, and does its pass fire?"""

import gc
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from evaluation.measures import SampleStatistics, Watch, sample_statistics, unwatched
from evaluation.oatest.tracing import Traced, joined
from evaluation.oatest.triggers import Sample, TriggerRate, intended_passes, sample_of, triggers
from evaluation.series import Judged, SeriesPools, run_series
from miscompile.base.errors import ModelError
from miscompile.base.messages import normalise
from miscompile.base.rng import stream
from miscompile.core.outcome import Crashed, Outcome, OutOfMemory, Raised, Rejected, Unsupported, Values, status_of
from miscompile.engine.wiring import make_oracle
from miscompile.execution.zygote import RARELY
from miscompile.graph.check import check
from miscompile.graph.read import read
from miscompile.targets.registry import parse_target
from miscompile.triage.signature import frames_of

PAPERS_TRIGGER = {"tvm": 0.9136, "onnxruntime": 0.7549}
"""Trigger rates of the paper, by coverage of the files of the passes."""

PAPERS_GENERATION = 0.1
"""Generation takes less than this share of the paper's time."""

PAPERS_DIRECT = 0.05
"""Share of valid programs when a pattern is inserted and no edge is repaired."""

_EVERY = 250
"""Syntheses between two sets of figures."""


@dataclass(frozen=True, slots=True)
class Splicing:
    """The result of `syntheses` on one target.

    `checked` pass onnx's full check and what this tool asks beyond it; `unchecked` says of the others why not.
    `endings` says what became of the unoptimised build: values; refused, which is a lawful no; any other word is a
    failure; `said` counts what it says of those without values, beginning with that word, masked as in signatures.
    `valid` pass the check and run. `into`, `out` and `inside` count programs with an edge from the seed into
    the pattern, from the pattern into the seed, and with both; in `fixed`, what the pattern reads of the seed depends
    on no input, which is not counted as an edge; in `disputed` the recipe says another thing than the edges.
    `strategies` says how the patterns came in, `bridges` and `orders` how many bridges and patterns a program has,
    `called` how many patterns stand as functions. `seconds` are of the wall clock, `generating` and `compiling` CPU
    seconds: of making programs and of learning from outcomes, and inside the compiler, where each program is built and
    run in at least two ways, a share of them under observation.
    """

    target: str
    syntheses: int
    checked: int
    unchecked: Mapping[str, int]
    endings: Mapping[str, int]
    said: Mapping[str, int]
    valid: int
    into: int
    out: int
    inside: int
    fixed: int
    disputed: int
    strategies: Mapping[str, int]
    bridges: SampleStatistics
    orders: SampleStatistics
    called: int
    seconds: float
    generating: float
    compiling: float
    trigger: TriggerRate | None = None

    @property
    def refused(self) -> int:
        """Programs that the target lawfully refuses."""
        return self.endings.get("refused", 0)

    @property
    def generation(self) -> float:
        """Share of generation in the CPU time of generation and compiler together."""
        both = self.generating + self.compiling
        return self.generating / both if both else 0.0

    def share(self, count: int) -> float:
        """Return `count` as a share of the syntheses."""
        return count / self.syntheses if self.syntheses else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return everything as a JSON object."""
        counts = ("syntheses", "checked", "valid", "refused", "into", "out", "inside", "fixed", "disputed", "called")
        shares = ("checked", "valid", "refused", "into", "out", "inside", "fixed")
        return {
            "target": self.target,
            **{name: getattr(self, name) for name in counts},
            "shares": {name: self.share(getattr(self, name)) for name in shares},
            "unchecked": dict(self.unchecked),
            "endings": dict(self.endings),
            "said": dict(self.said),
            "strategies": dict(self.strategies),
            "bridges": self.bridges.as_json(),
            "orders": self.orders.as_json(),
            "seconds": {"wall": self.seconds, "generating_cpu": self.generating, "compiling_cpu": self.compiling},
            "generation": self.generation,
            "trigger": None if self.trigger is None else self.trigger.as_json(),
            "paper": {
                "trigger": PAPERS_TRIGGER.get(parse_target(self.target).release),
                "generation_below": PAPERS_GENERATION,
                "valid_without_repair": PAPERS_DIRECT,
            },
        }


@dataclass(slots=True)
class _Tally:
    """The counts so far."""

    target: str
    begin: float
    counts: Counter[str] = field(default_factory=Counter)
    unchecked: Counter[str] = field(default_factory=Counter)
    endings: Counter[str] = field(default_factory=Counter)
    said: Counter[str] = field(default_factory=Counter)
    strategies: Counter[str] = field(default_factory=Counter)
    bridges: list[int] = field(default_factory=list)
    orders: list[int] = field(default_factory=list)

    def take(self, judged: Judged, producer: Traced) -> None:
        """Count one synthesis; the first outcome is that of the unoptimised build."""
        case, counts = judged.case, self.counts
        ending = ending_of(judged.outcomes[0])
        self.endings[ending] += 1
        if ending != "values":
            self.said[f"{ending}: {words_of(judged.outcomes[0])}"] += 1
        try:
            check(case.program.payload)
        except ModelError as error:
            self.unchecked[str(error)[:120]] += 1
        else:
            counts["checked"] += 1
            counts["valid"] += ending == "values"
        found = joined(read(case.program.payload), producer.trace(case))
        recipe = case.recipe
        counts["into"] += found.into
        counts["out"] += found.out
        counts["inside"] += found.inside
        counts["fixed"] += found.fixed
        counts["disputed"] += (found.into, found.out) != (recipe["inner in"], recipe["inner out"])
        counts["called"] += bool(recipe.get("called"))
        self.strategies[recipe["strategy"]] += 1
        self.bridges.append(recipe["bridges"])
        self.orders.append(len(recipe["motifs"]))

    def figures(self, generating: float, compiling: float) -> Splicing:
        """Return the figures so far, of at least one synthesis."""
        counts = self.counts
        return Splicing(
            target=self.target,
            syntheses=len(self.orders),
            checked=counts["checked"],
            unchecked=dict(self.unchecked),
            endings=dict(self.endings),
            said=dict(self.said.most_common()),
            valid=counts["valid"],
            into=counts["into"],
            out=counts["out"],
            inside=counts["inside"],
            fixed=counts["fixed"],
            disputed=counts["disputed"],
            strategies=dict(self.strategies.most_common()),
            bridges=sample_statistics(self.bridges),
            orders=sample_statistics(self.orders),
            called=counts["called"],
            seconds=time.monotonic() - self.begin,
            generating=generating,
            compiling=compiling,
        )


def ending_of(outcome: Outcome) -> str:
    """Return what became of a build in a word: values, refused, or how it failed."""
    match outcome:
        case Values():
            return "values"
        case Rejected() | Unsupported():
            return "refused"
        case _:
            return status_of(outcome)


def words_of(outcome: Outcome) -> str:
    """Return what a target says of a program that it gives no values for, without what varies from case to case."""
    match outcome:
        case Rejected() | Unsupported() | Raised() | OutOfMemory():
            return normalise(outcome.message)
        case Crashed(_, signal, observations):
            return " < ".join((f"signal {signal}", *frames_of(observations.stderr)))
        case _:
            return ""


def measure(
    pools: SeriesPools, producer: Traced, syntheses: int, watched: int, watch: Watch = unwatched
) -> Iterator[Splicing]:
    """Run a series of `syntheses` as a campaign does, then see on `watched` of its programs which passes fire.

    Yields the figures so far from time to time, and at the end with the trigger rate. The garbage collector is set as
    in a campaign's lane, because its work is part of the CPU time of generation.
    """
    gc.freeze()
    gc.set_threshold(*RARELY)
    plan = pools.plan
    tally = _Tally(plan.target, time.monotonic())
    sample: Sample = sample_of(watched, stream(plan.seed, "bench", "watched"))
    rng_of = partial(stream, plan.seed, "bench", "splicing")

    def figures() -> Splicing:
        return tally.figures(producer.cpu_seconds, pools.pool.compiler_cpu_seconds)

    for judged in run_series(pools, producer, make_oracle(plan, {}), syntheses, rng_of):
        tally.take(judged, producer)
        if intended_passes(judged.case):
            sample.offer(judged.case)
        watch(f"{plan.target}, syntheses", judged.test + 1, syntheses)
        if (judged.test + 1) % _EVERY == 0:
            yield figures()
    found = figures()
    yield found
    trigger = triggers(sample.cases, plan.target, pools.second, f"{plan.target}, which passes fire", watch)
    yield replace(found, trigger=trigger)
