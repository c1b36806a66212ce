"""Which operators go into a regression suite: ranked for a compiler, without those whose results are left open."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from miscompile.instances.archive import distinct
from miscompile.instances.instance import Instance
from miscompile.migration.doubt import doubts_of
from miscompile.migration.migrated import migrate
from miscompile.migration.ranking.counts import counts_of
from miscompile.migration.ranking.order import Facts, ranked
from miscompile.migration.sources import Say, instances_of
from miscompile.migration.suite import Entry, SuiteReport, export_suite


@dataclass(frozen=True, slots=True)
class Choice:
    """What is exported: the first `tests` (None: all) in `order`, for the CI of `target`; `operators` restricts."""

    target: str = "onnxruntime"
    order: str = "opera"
    tests: int | None = None
    operators: tuple[str, ...] = ()
    seed: int = 0
    instances: tuple[Path, ...] = field(default=())


def export(choice: Choice, folder: Path, say: Say) -> SuiteReport:
    """Write the suite. Raises UsageError when the folder cannot be used, or for instances that are none."""
    every = [
        one
        for one in distinct(instances_of("onnx", choice.instances, say))
        if not choice.operators or one.api in choice.operators
    ]
    facts = Facts(choice.seed, counts_of(choice.target, "onnx"))
    left: Counter[str] = Counter()
    entries = _entries([every[place] for place in ranked(choice.order, every, facts)], choice.tests, left)
    report = export_suite(entries, folder)
    report.left_out.update(left)
    return report


def _entries(instances: Sequence[Instance], tests: int | None, left: "Counter[str]") -> Iterator[Entry]:
    """Yield the first entries that can be tests; those that cannot are counted in `left`."""
    made = 0
    for instance in instances:
        if tests is not None and made >= tests:
            return
        test = migrate(instance)
        if test is None:
            left["no model comes of it"] += 1
        elif doubts_of(instance, test.case.feeds[0]):
            left["its results are left open"] += 1
        else:
            made += 1
            yield Entry(instance.operator, test.case)
