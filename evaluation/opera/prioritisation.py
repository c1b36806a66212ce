"""OPERA's Table II: every order over tests whose bugs are known, beside the figures of the paper.

Nothing is run here: a migration has run all tests of a front end once and kept what came of each. The bugs that an
order would have found, and when, follow from that.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluation.measures import SampleStatistics, Watch, sample_statistics, unwatched
from evaluation.opera.apfd import SHARES, apfd, rauc, times
from evaluation.opera.orders import BY_STATEMENTS, ORDERS, CoveredFacts, ranked
from miscompile.base.errors import UsageError
from miscompile.instances.code import digest_of
from miscompile.instances.instance import Instance
from miscompile.migration.results import ResultRow

PAPERS = {
    "opera": 0.898, "operators": 0.613, "parameters": 0.832, "random": 0.794, "fast": 0.802, "total": 0.609,
    "additional": 0.654,
}  # fmt: skip
"""Mean APFD over eight front ends: Table II, and the ablation in section V-B."""

PAPERS_FRONTS: Mapping[tuple[str, str], Mapping[str, float]] = {
    (compiler, library): dict(zip(("opera", "random", "fast", "total", "additional"), figures, strict=True))
    for compiler, library, *figures in (
        ("tvm", "torch", 0.984, 0.913, 0.930, 0.815, 0.778),
        ("tvm", "keras", 0.976, 0.905, 0.906, 0.691, 0.868),
        ("tvm", "onnx", 0.727, 0.577, 0.487, 0.316, 0.575),
        ("tensorrt", "torch", 0.982, 0.867, 0.930, 0.706, 0.854),
        ("tensorrt", "onnx", 0.768, 0.645, 0.628, 0.663, 0.334),
        ("openvino", "torch", 0.983, 0.877, 0.927, 0.608, 0.670),
        ("openvino", "keras", 0.946, 0.850, 0.919, 0.750, 0.740),
        ("openvino", "onnx", 0.816, 0.716, 0.689, 0.323, 0.416),
    )
}
"""APFD by compiler and library (Table II)."""

_RUN = ("pass", "unsupported", "finding", "memory")
"""Statuses of tests that a front end has seen; others were found invalid or random before, and are not ranked."""


@dataclass(frozen=True, slots=True)
class OrderSettings:
    """How often each order is drawn, with which seeds, and which orders (empty: all that can be)."""

    repetitions: int = 5
    seed: int = 0
    orders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Subject:
    """The tests of a front end in the order in which they were harvested, and what came of each.

    `compiler` and `library` name the front end in the paper's tables; `facts` are its counts and coverage.
    """

    name: str
    compiler: str
    library: str
    instances: tuple[Instance, ...]
    rows: tuple[ResultRow, ...]
    facts: CoveredFacts = field(default_factory=CoveredFacts)

    @property
    def bugs(self) -> int:
        """The number of different bugs that all tests together reveal."""
        return len({row.bug for row in self.rows if row.bug})


def subject_of(
    name: str,
    compiler: str,
    library: str,
    instances: Iterable[Instance],
    rows: Iterable[ResultRow],
    facts: CoveredFacts,
) -> Subject:
    """Join results and instances by digest; instances without a result, or that were never run, are skipped.

    Raises UsageError when nothing is left, which is so when the archive is not the one that was migrated.
    """
    by_digest = {row.digest: row for row in rows if row.status in _RUN}
    found = [(one, row) for one in instances if (row := by_digest.get(digest_of(one))) is not None]
    if not found:
        raise UsageError(f"none of the instances has a result on {name}; give those that were migrated")
    tests, kept = zip(*found, strict=True)
    return Subject(name, compiler, library, tests, kept, facts)


@dataclass(frozen=True, slots=True)
class Ranking:
    """Figures of one order on one front end, over its repetitions.

    `seconds` is what the ranking cost, `until` the seconds until all bugs were found, the ranking's own among them.
    """

    order: str
    apfd: SampleStatistics
    rauc: Mapping[float, SampleStatistics]
    seconds: SampleStatistics
    until: SampleStatistics

    def as_json(self) -> dict[str, Any]:
        """Return the figures as a JSON object."""
        return {
            "order": self.order,
            "apfd": self.apfd.as_json(),
            "rauc": {f"{share:.0%}": found.as_json() for share, found in self.rauc.items()},
            "seconds": self.seconds.as_json(),
            "seconds_to_all_bugs": self.until.as_json(),
        }


@dataclass(frozen=True, slots=True)
class FrontFigures:
    """All orders on one front end; without bugs there is nothing to measure, and `rankings` is empty."""

    name: str
    compiler: str
    library: str
    tests: int
    operators: int
    bugs: int
    revealing: int
    rankings: Mapping[str, Ranking] = field(default_factory=dict)

    def papers(self) -> Mapping[str, float]:
        """Return the paper's APFD for this front end; empty for one that it has not."""
        return PAPERS_FRONTS.get((self.compiler, self.library), {})

    def as_json(self) -> dict[str, Any]:
        """Return the figures as a JSON object."""
        return {
            "front": self.name,
            "tests": self.tests,
            "operators": self.operators,
            "bugs": self.bugs,
            "revealing": self.revealing,
            "orders": [ranking.as_json() for ranking in self.rankings.values()],
            "paper": dict(self.papers()),
        }


@dataclass(frozen=True, slots=True)
class OrderFigures:
    """The figures so far."""

    settings: OrderSettings
    fronts: tuple[FrontFigures, ...] = ()

    def means(self) -> dict[str, float]:
        """Return the mean APFD of every order over the front ends that have bugs and on which all orders were drawn.

        An order that is missing on one of them, as those by coverage are where the front end is not in Python, is left
        out: its mean would be one over other front ends.
        """
        ranked_ones = [front for front in self.fronts if front.rankings]
        names = [name for name in ORDERS if ranked_ones and all(name in front.rankings for front in ranked_ones)]
        return {name: sum(front.rankings[name].apfd.mean for front in ranked_ones) / len(ranked_ones) for name in names}

    def as_json(self) -> dict[str, Any]:
        """Return everything as a JSON object."""
        return {
            "table": "opera",
            "repetitions": self.settings.repetitions,
            "seed": self.settings.seed,
            "fronts": [front.as_json() for front in self.fronts],
            "mean_apfd": self.means(),
            "paper": dict(PAPERS),
        }


def run(settings: OrderSettings, subjects: Iterable[Subject], watch: Watch = unwatched) -> Iterator[OrderFigures]:
    """Rank the tests of each subject by each order; yield all results so far after each subject.

    Raises UsageError for an unknown order.
    """
    for name in settings.orders:
        if name not in ORDERS:
            raise UsageError(f"there is no order '{name}'; there are: {', '.join(ORDERS)}")
    results = OrderFigures(settings)
    for subject in subjects:
        results = OrderFigures(settings, (*results.fronts, figures_of(subject, settings, watch)))
        yield results


def figures_of(subject: Subject, settings: OrderSettings, watch: Watch = unwatched) -> FrontFigures:
    """Return the figures of one subject; orders that lack a fact are left out."""
    names = [name for name in settings.orders or ORDERS if _possible(name, subject)] if subject.bugs else []
    rankings = {}
    for number, name in enumerate(names):
        watch(f"{subject.name}, order {name}", number, len(names))
        rankings[name] = _ranking(subject, name, settings)
    return FrontFigures(
        subject.name,
        subject.compiler,
        subject.library,
        len(subject.instances),
        len({one.api for one in subject.instances}),
        subject.bugs,
        sum(bool(row.bug) for row in subject.rows),
        rankings,
    )


def _possible(name: str, subject: Subject) -> bool:
    return name not in BY_STATEMENTS or bool(subject.facts.coverage)


def _ranking(subject: Subject, name: str, settings: OrderSettings) -> Ranking:
    drawn = [_once(subject, name, settings.seed + number) for number in range(max(1, settings.repetitions))]
    return Ranking(
        name,
        sample_statistics(apfd(bugs) for bugs, _, _ in drawn),
        {share: sample_statistics(rauc(bugs, share) for bugs, _, _ in drawn) for share in SHARES},
        sample_statistics(cost for _, _, cost in drawn),
        sample_statistics(max(times(bugs, seconds, cost).values()) for bugs, seconds, cost in drawn),
    )


def _once(subject: Subject, name: str, seed: int) -> tuple[list[Sequence[str]], list[float], float]:
    """Return the bugs and seconds of the tests in one drawing of an order, and the CPU seconds that ranking took."""
    facts = CoveredFacts(seed, subject.facts.counts, subject.facts.coverage)
    begin = time.process_time()
    places = ranked(name, subject.instances, facts)
    cost = time.process_time() - begin
    rows = [subject.rows[place] for place in places]
    return [(row.bug,) if row.bug else () for row in rows], [row.seconds for row in rows], cost
