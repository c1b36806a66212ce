"""The export of a regression suite: the tests are ranked for a compiler, and each passes the cross-check."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from miscompile.core.events import ProgressListener
from miscompile.harvest.libraries.sources import check_operators, instances_of, of_operators
from miscompile.instances.archive import distinct
from miscompile.instances.instance import Instance
from miscompile.migration.cross_check import CrossCheck
from miscompile.migration.layouts import export_lit, export_pytest
from miscompile.migration.ranking.counts import counts_of
from miscompile.migration.ranking.order import RankingFacts, ranked
from miscompile.migration.suite import SuiteEntry, SuiteReport, export_suite
from miscompile.producers.instances.migrated import Migrated, migrate
from miscompile.targets.registry import DEFAULT_TARGET

_BATCH = 16
"""Tests of one batch."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The choice of tests: the first `tests` (None: all) in `order`, for the CI of `target`; `operators` restricts.

    `layout` is one of `layouts.LAYOUTS`.
    """

    target: str = DEFAULT_TARGET
    order: str = "opera"
    tests: int | None = None
    operators: tuple[str, ...] = ()
    seed: int = 0
    instances: tuple[Path, ...] = field(default=())
    layout: str = "onnx"


def export(choice: Choice, folder: Path, on_progress: ProgressListener) -> SuiteReport:
    """Write the suite.

    Raises UsageError when the folder cannot be used, for malformed instances, and for operators without an instance.
    """
    known = tuple(distinct(instances_of("onnx", choice.instances, on_progress)))
    check_operators(choice.operators, known, ["onnx"])
    every = of_operators(known, choice.operators)
    facts = RankingFacts(choice.seed, counts_of(choice.target, "onnx"))
    left: Counter[str] = Counter()
    order = [every[place] for place in ranked(choice.order, every, facts)]
    with CrossCheck() as cross_check:
        entries = _entries(order, cross_check, left)
        if choice.layout == "onnx":
            report = export_suite(entries, folder, most=choice.tests)
        else:
            write = export_pytest if choice.layout == "pytest" else export_lit
            report = write(entries, folder, choice.target, choice.tests)
    report.left_out.update(left)
    return report


def _entries(instances: Sequence[Instance], cross_check: CrossCheck, left: "Counter[str]") -> Iterator[SuiteEntry]:
    """Yield the entries that pass the cross-check, in order; `left` counts the reasons for the others."""
    for start in range(0, len(instances), _BATCH):
        tests: list[Migrated] = []
        for instance in instances[start : start + _BATCH]:
            test = migrate(instance)
            if test is None:
                left["no model comes of it"] += 1
            else:
                tests.append(test)
        for test, expected in zip(tests, cross_check.expected(tests), strict=True):
            if isinstance(expected, str):
                left[expected] += 1
            else:
                yield SuiteEntry(test.instance.operator, test.case, (expected,))
