"""A migration from beginning to end: instances of each library, an order for each front end, and the session."""

from collections.abc import Sequence
from typing import Protocol

from miscompile.base.errors import UsageError
from miscompile.core.events import Notice
from miscompile.core.ports import Listener
from miscompile.instances.archive import distinct
from miscompile.instances.instance import Instance
from miscompile.instances.sequence import layer_of
from miscompile.migration.fronts import FrontEnd
from miscompile.migration.plan import MigrationPlan
from miscompile.migration.ranking.counts import counts_of
from miscompile.migration.ranking.order import Facts, ranked
from miscompile.migration.session import Session
from miscompile.migration.sources import instances_of


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

    libraries = tuple(dict.fromkeys(front.library for front in plan.fronts))
    found = {library: wanted(plan, library, say) for library in libraries}
    ordered = {front.name: ordered_for(plan, front, found[front.library]) for front in plan.fronts}
    Session(plan, ordered, listeners).run()


def wanted(plan: MigrationPlan, library: str, say: Say) -> tuple[Instance, ...]:
    """Return the instances of a library that the plan asks for. Raises UsageError when there are none."""
    every = tuple(distinct(instances_of(library, plan.instances, say)))
    if not every:
        raise UsageError(f"there are no instances of {library} to migrate; `miscompile harvest {library}` makes some")
    named = {name for name in plan.operators if any(name in _names(one) for one in every)}
    if plan.operators and not named:
        raise UsageError(
            f"no instance of {library} is of {', '.join(plan.operators)}; give names as in torch.nn.Conv2d"
        )
    return tuple(one for one in every if not plan.operators or named & _names(one))


def _names(instance: Instance) -> set[str]:
    """Return what the operator of an instance is called; a layer in a sequence is still that layer."""
    return {name for one in (instance, layer_of(instance)) for name in (one.api, one.operator)}


def ordered_for(plan: MigrationPlan, front: FrontEnd, instances: Sequence[Instance]) -> list[Instance]:
    """Return the instances in the order in which they go through a front end."""
    places = ranked(plan.order, instances, Facts(plan.seed, counts_of(front.target, front.library)))
    return [instances[place] for place in places]
