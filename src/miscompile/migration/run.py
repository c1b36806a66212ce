"""A migration from beginning to end: instances of each library, an order for each front end, and the session."""

from collections.abc import Sequence

from miscompile.base.errors import UsageError
from miscompile.core.events import Notice, ProgressListener, Started
from miscompile.core.ports import Listener
from miscompile.harvest.libraries.sources import check_operators, instances_of, of_operators
from miscompile.instances.archive import distinct
from miscompile.instances.instance import Instance
from miscompile.migration.plan import MigrationPlan
from miscompile.migration.ranking.counts import counts_of
from miscompile.migration.ranking.order import RankingFacts, ranked
from miscompile.migration.session import MigrationSession, begin
from miscompile.targets.front_ends import FrontEnd


def run(plan: MigrationPlan, listeners: Sequence[Listener]) -> None:
    """Migrate, and store the findings in `plan.out`.

    Raises UsageError when a front end cannot work or there is nothing to migrate, KeyboardInterrupt after a clean stop.
    """

    def on_progress(text: str) -> None:
        for listener in listeners:
            listener.on(Notice(text))

    libraries = tuple(dict.fromkeys(front.library for front in plan.fronts))
    found = {library: wanted(plan, library, on_progress) for library in libraries}
    check_operators(plan.operators, [one for ones in found.values() for one in ones], libraries)
    begin(plan)
    for listener in listeners:
        listener.on(Started())
    ordered = {front.name: ordered_for(plan, front, found[front.library]) for front in plan.fronts}
    MigrationSession(plan, ordered, listeners).run()


def wanted(plan: MigrationPlan, library: str, on_progress: ProgressListener) -> tuple[Instance, ...]:
    """Return the instances of a library that the plan asks for. Raises UsageError when the library has none."""
    every = tuple(distinct(instances_of(library, plan.instances, on_progress)))
    if not every:
        raise UsageError(f"there are no instances of {library} to migrate; `miscompile harvest {library}` makes some")
    return of_operators(every, plan.operators)


def ordered_for(plan: MigrationPlan, front: FrontEnd, instances: Sequence[Instance]) -> list[Instance]:
    """Return the instances in the order in which they go through a front end."""
    if not instances:  # the named operators are another library's
        return []
    facts = RankingFacts(plan.seed, counts_of(front.target, front.library))
    return [instances[place] for place in ranked(plan.order, instances, facts)]
