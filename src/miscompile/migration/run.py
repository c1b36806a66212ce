"""A migration from beginning to end: instances of each library, an order for each front end, and the session."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from miscompile.base.errors import UsageError
from miscompile.core.events import Notice
from miscompile.core.ports import Listener
from miscompile.harvest.libraries.sources import check_operators, instances_of, of_operators
from miscompile.instances.archive import distinct
from miscompile.instances.instance import Instance
from miscompile.migration.plan import MigrationPlan
from miscompile.migration.ranking.counts import counts_of
from miscompile.migration.ranking.order import ORDERS, Facts, ranked
from miscompile.migration.ranking.reach import check_front, need_coverage, reached_by
from miscompile.migration.session import Session, begin
from miscompile.targets.front_ends import FrontEnd


class Say(Protocol):
    """Tells people something, in a line."""

    def __call__(self, text: str) -> None:
        """Say `text`."""
        ...


def run(plan: MigrationPlan, listeners: Sequence[Listener]) -> None:
    """Migrate, and leave what is found in `plan.out`.

    Raises UsageError when a front end cannot work or there is nothing to migrate, KeyboardInterrupt after a clean stop.
    """

    def say(text: str) -> None:
        for listener in listeners:
            listener.on(Notice(text))

    if _by_statements(plan):
        for front in plan.fronts:
            check_front(front.name)
            if not _statements_of(plan, front).exists():
                need_coverage()
    libraries = tuple(dict.fromkeys(front.library for front in plan.fronts))
    found = {library: wanted(plan, library, say) for library in libraries}
    check_operators(plan.operators, [one for ones in found.values() for one in ones], libraries)
    begin(plan)  # statements may be collected for hours, into its folder
    ordered = {front.name: ordered_for(plan, front, found[front.library], say) for front in plan.fronts}
    Session(plan, ordered, listeners).run()


def wanted(plan: MigrationPlan, library: str, say: Say) -> tuple[Instance, ...]:
    """Return the instances of a library that the plan asks for. Raises UsageError when the library has none."""
    every = tuple(distinct(instances_of(library, plan.instances, say)))
    if not every:
        raise UsageError(f"there are no instances of {library} to migrate; `miscompile harvest {library}` makes some")
    return of_operators(every, plan.operators)


def _by_statements(plan: MigrationPlan) -> bool:
    return "coverage" in ORDERS[plan.order].needs


def _statements_of(plan: MigrationPlan, front: FrontEnd) -> Path:
    return plan.out / "coverage" / f"{front.name}.json.gz"


def ordered_for(plan: MigrationPlan, front: FrontEnd, instances: Sequence[Instance], say: Say) -> list[Instance]:
    """Return the instances in the order in which they go through a front end.

    An order by statements runs all of them once, and keeps in OUT/coverage what they reach.
    """
    if not instances:  # the named operators are another library's
        return []
    facts = Facts(plan.seed, counts_of(front.target, front.library))
    if _by_statements(plan):
        place = _statements_of(plan, front)
        reached = reached_by(instances, front.name, front.target, place, say, constants=plan.constants)
        facts = replace(facts, coverage=reached.tests)
    return [instances[place] for place in ranked(plan.order, instances, facts)]
