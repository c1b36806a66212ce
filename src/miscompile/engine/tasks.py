"""The tasks of a lane in a campaign that has a fixed list of them."""

from dataclasses import dataclass, field

from miscompile.core.ports import FiniteProducer, Producer
from miscompile.engine.plan import Plan
from miscompile.findings.tasks import TASKS, TaskEnd, TaskLog
from miscompile.producers.combined import finite_part


@dataclass(slots=True)
class LaneTasks:
    """The tasks of the lane number `lane` in a session, `names`: the case of an index is of the task at that place.

    So a lane that is restarted after a death goes on with the same tasks.
    """

    producer: FiniteProducer
    log: TaskLog
    session: int
    lane: int
    names: tuple[str, ...]
    _finished: list[tuple[TaskEnd, str]] = field(default_factory=list)

    def begin(self, index: int) -> None:
        """Let the producer make cases of the task of this index."""
        self.producer.begin(self.names[index])

    def finish(self, index: int, end: TaskEnd) -> None:
        """Note how the task of this index has ended."""
        self._finished.append((end, self.names[index]))

    def write(self) -> None:
        """Write the finished tasks to the campaign's folder. Raises StoreError."""
        if self._finished:
            self.log.note(self._finished, self.session, self.lane)
            self._finished.clear()


def tasks_of(plan: Plan, producer: Producer, session: int, lane: int) -> LaneTasks | None:
    """Return the tasks of one lane; None for a campaign that has no list of tasks."""
    finite, log = finite_part(producer), TaskLog(plan.own / TASKS)
    if finite is None:
        return None
    return LaneTasks(finite, log, session, lane, log.share(finite.tasks, session, lane, plan.workers))
