"""Diversity of graphs with and without guidance (HIRFUZZ, section 5.5, figure 6). Pure generation, no compiler.

The score is the number of covered items: operator with dtype, operator with output shape, operator with operator.
"""

import itertools
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any, TypeAlias

from evaluation.measures import SampleStatistics, Watch, sample_statistics, unwatched
from miscompile.base.rng import stream
from miscompile.ops.support import Support
from miscompile.producers.hirfuzz.producer import Hirfuzz, HirfuzzOptions, PresetGuidance

PAPERS_RATIO = 5.0
"""The paper's figure: "more than five times" the score without guidance, after 200 graphs of 100 operators."""

MODES: tuple[PresetGuidance, ...] = ("gate", "off", "steer")
"""With guidance as in the paper, without, and as this tool's own generator is guided."""

_POINTS = 20

_Task: TypeAlias = tuple[HirfuzzOptions, int, int, int]
"""The options, the number of graphs, the seed, the repetition."""


@dataclass(frozen=True, slots=True)
class DiversityRepetition:
    """One repetition: the score after each graph, the items of each coverage at the end, and the operators in all."""

    scores: tuple[int, ...]
    dtypes: int
    shapes: int
    edges: int
    paths: int
    operators: int
    seconds: float

    @property
    def score(self) -> int:
        """The diversity score after the last graph."""
        return self.scores[-1]


@dataclass(frozen=True, slots=True)
class ModeDiversity:
    """All repetitions under one guidance."""

    mode: PresetGuidance
    series: tuple[DiversityRepetition, ...]

    @property
    def score(self) -> SampleStatistics:
        """The diversity score over the repetitions."""
        return sample_statistics(one.score for one in self.series)

    def curve(self) -> list[tuple[int, float]]:
        """Return (graphs, mean score) at up to twenty places: the line of the paper's figure."""
        count = len(self.series[0].scores)
        places = sorted({max(1, round(count * step / _POINTS)) for step in range(1, _POINTS + 1)})
        return [(place, sample_statistics(one.scores[place - 1] for one in self.series).mean) for place in places]

    def gained(self) -> tuple[float, float]:
        """Return the mean score that the first tenth of the graphs brought for each graph, and the last tenth."""
        count = len(self.series[0].scores)
        tenth = max(1, count // 10)
        before = count - tenth
        first = sample_statistics(one.scores[tenth - 1] / tenth for one in self.series).mean
        last = sample_statistics(
            (one.score - (one.scores[before - 1] if before else 0)) / tenth for one in self.series
        ).mean
        return first, last

    def as_json(self) -> dict[str, Any]:
        """Return the figures as a JSON object."""
        items = {
            name: sample_statistics(getattr(one, name) for one in self.series).as_json()
            for name in ("dtypes", "shapes", "edges", "paths", "operators")
        }
        first, last = self.gained()
        return {
            "mode": self.mode,
            "score": self.score.as_json(),
            "items": items,
            "curve": [list(point) for point in self.curve()],
            "gained_per_graph": {"first_tenth": first, "last_tenth": last},
            "seconds": sum(one.seconds for one in self.series),
        }


@dataclass(frozen=True, slots=True)
class Diversity:
    """The figures of all modes, and each mode's score over that without guidance, repetition by repetition."""

    modes: tuple[ModeDiversity, ...]

    def mode(self, name: PresetGuidance) -> ModeDiversity:
        """Return the figures of one mode. Raises KeyError when it was not measured."""
        found = {mode.mode: mode for mode in self.modes}
        return found[name]

    def ratio(self, name: PresetGuidance) -> SampleStatistics:
        """Return the score under `name` over the score without guidance."""
        free = self.mode("off").series
        return sample_statistics(
            one.score / other.score for one, other in zip(self.mode(name).series, free, strict=True)
        )

    def as_json(self) -> dict[str, Any]:
        """Return the figures as a JSON object."""
        measured = [mode.mode for mode in self.modes]
        ratios = {mode: self.ratio(mode).as_json() for mode in measured if mode != "off" and "off" in measured}
        return {"modes": [mode.as_json() for mode in self.modes], "ratios": ratios, "papers_ratio": PAPERS_RATIO}


def measure(
    generator_options: HirfuzzOptions,
    graphs: int,
    repetitions: int,
    seed: int,
    modes: Sequence[PresetGuidance] = MODES,
    workers: int = 1,
    watch: Watch = unwatched,
) -> Iterator[Diversity]:
    """Grow `graphs` graphs, `repetitions` times anew, under each of `modes`; `options` holds all other choices.

    Yields the figures after each repetition. What is measured does not depend on the number of `workers`, which are
    processes of their own where there are several.
    """
    tasks = [
        (replace(generator_options, guidance=mode), graphs, seed, repetition)
        for repetition in range(repetitions)
        for mode in modes
    ]
    found: list[DiversityRepetition] = []
    watch("diversity", 0, len(tasks))
    for series in _in_order(tasks, min(workers, len(tasks))):
        found.append(series)
        watch("diversity", len(found), len(tasks))
        if len(found) % len(modes) == 0:
            yield Diversity(
                tuple(ModeDiversity(mode, tuple(found[place :: len(modes)])) for place, mode in enumerate(modes))
            )


def _in_order(tasks: Sequence[_Task], workers: int) -> Iterator[DiversityRepetition]:
    """Yield what each task measures, in order."""
    if workers < 2:
        yield from itertools.starmap(_series, tasks)
        return
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))
    try:
        for waiting in [pool.submit(_series, *task) for task in tasks]:
            yield waiting.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _series(generator_options: HirfuzzOptions, graphs: int, seed: int, repetition: int) -> DiversityRepetition:
    producer = Hirfuzz(generator_options, Support(open=True))
    scores, operators, begin = [], 0, time.monotonic()
    for index in range(graphs):
        graph = producer.grow(stream(seed, "bench", "diversity", generator_options.guidance, repetition, index))
        operators += len(graph.operators)
        scores.append(producer.coverage.score)
    seen = producer.coverage
    return DiversityRepetition(
        tuple(scores),
        len(seen.dtypes),
        len(seen.shapes),
        len(seen.edges),
        len(seen.paths),
        operators,
        time.monotonic() - begin,
    )
