"""The finished tasks of a campaign whose producer has a fixed list of them, so that a resumed one does the others.

    OUT/tasks/total             the number of tasks, those of earlier sessions with other options among them
    OUT/tasks/SESSION-LANE      a line for each finished task: `made NAME`, or `not drawn NAME`

Each lane appends to a file of its own. It reads only those of earlier sessions, which nobody writes any more, so all
lanes of a session divide the same tasks among each other without talking.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from miscompile.base.errors import StoreError, write_error

TASKS = "tasks"
"""The subfolder of a campaign with its finished tasks."""

TaskEnd = Literal["made", "not drawn"]
"""What became of a task: a test, or nothing, because the producer had no case of it."""

MADE: TaskEnd = "made"
NOT_DRAWN: TaskEnd = "not drawn"
_TOTAL = "total"


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """How many tasks a campaign has, how many of them it has made, and how many it could not draw."""

    total: int
    made: int
    not_drawn: int

    @property
    def left(self) -> int:
        """The number of tasks that are still to be done."""
        return max(0, self.total - self.made - self.not_drawn)

    def __add__(self, other: "TaskCounts") -> "TaskCounts":
        """Return the counts of two campaigns together."""
        return TaskCounts(self.total + other.total, self.made + other.made, self.not_drawn + other.not_drawn)


@dataclass(frozen=True, slots=True)
class TaskLog:
    """The finished tasks in `folder`."""

    folder: Path

    def share(self, tasks: Iterable[str], session: int, lane: int, lanes: int) -> tuple[str, ...]:
        """Return the tasks of one of `lanes` lanes in `session`: its part of those that no earlier session finished."""
        return self.left(tasks, session)[lane::lanes]

    def left(self, tasks: Iterable[str], session: int | None = None) -> tuple[str, ...]:
        """Return the tasks that no session before `session` (None: no session) has finished."""
        done = {name for number, _, name in self._entries() if session is None or number < session}
        return tuple(name for name in tasks if name not in done)

    def note(self, finished: Iterable[tuple[TaskEnd, str]], session: int, lane: int) -> None:
        """Append tasks with what became of them. Raises StoreError when that cannot be written."""
        try:
            with (self.folder / f"{session}-{lane}").open("a", encoding="utf-8") as file:
                file.write("".join(f"{what} {name}\n" for what, name in finished))
        except OSError as error:
            raise write_error(f"finished tasks to {self.folder}", error) from None

    def expect(self, tasks: Collection[str]) -> None:
        """Make the folder and note the number of tasks. Raises StoreError when that cannot be written.

        A resumed campaign may have other operators than before; the tasks that it has finished and that are none of
        `tasks` count all the same.
        """
        others = {name for _, _, name in self._entries()} - set(tasks)
        fresh = self.folder / f".new-{_TOTAL}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            fresh.write_text(f"{len(tasks) + len(others)}\n", "utf-8")
            fresh.replace(self.folder / _TOTAL)
        except OSError as error:
            raise write_error(f"finished tasks to {self.folder}", error) from None

    def counts(self) -> TaskCounts | None:
        """Return how far the campaign is; None for one without a list of tasks. Raises StoreError."""
        path = self.folder / _TOTAL
        if not path.exists():
            return None
        ends = {name: what for _, what, name in self._entries()}
        made = sum(what == MADE for what in ends.values())
        try:
            return TaskCounts(int(path.read_text("utf-8")), made, len(ends) - made)
        except (OSError, ValueError) as error:
            raise StoreError(f"cannot read {path}: {error}") from None

    def _entries(self) -> Iterator[tuple[int, TaskEnd, str]]:
        """Yield session, end and name of every finished task; a line that a killed process left behind is ignored.

        Raises StoreError for a file that cannot be read.
        """
        for path in sorted(self.folder.glob("*-*")):
            session = path.name.partition("-")[0]
            if not session.isdecimal():
                continue
            try:
                text = path.read_text("utf-8", errors="replace")
            except OSError as error:
                raise StoreError(f"cannot read {path}: {error}") from None
            for line in text.splitlines(keepends=True):
                what = next((one for one in (MADE, NOT_DRAWN) if line.startswith(f"{one} ")), None)
                if what is not None and line.endswith("\n"):
                    yield int(session), what, line[len(what) + 1 : -1]
