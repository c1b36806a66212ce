"""The pool: workers that run programs on one target or several, as the engine and triage see them."""

from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from miscompile.core.outcome import Outcome
from miscompile.core.run import Run


@dataclass(frozen=True, slots=True)
class Counters:
    """Counts since the pool was opened: dead workers (timeouts included), runs that timed out, forks, lost zygotes.

    `respawn_seconds` is the time from noticing the last death to the fork of the replacement; 0.0 before any death.
    """

    deaths: int = 0
    timeouts: int = 0
    forks: int = 0
    zygotes: int = 0
    respawn_seconds: float = 0.0


class Pool(Protocol):
    """Workers for one target or several; a context manager that starts and ends them."""

    def __enter__(self) -> Self:
        """Start the workers. Raises UsageError when a target cannot be loaded."""
        ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End all workers."""
        ...

    @property
    def counters(self) -> Counters:
        """Counts of deaths, timeouts and forks."""
        ...

    @property
    def compiler_cpu_seconds(self) -> float:
        """CPU time that the workers have spent inside compilers."""
        ...

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        """Execute `runs` as one batch and return their outcomes."""
        ...

    def submit(self, runs: Sequence[Run]) -> int:
        """Queue `runs` as one batch and return its ticket."""
        ...

    def poll(self, timeout: float) -> list[tuple[int, list[Outcome]]]:
        """Return finished batches as (ticket, outcomes); waits up to `timeout` seconds when there is none yet."""
        ...

    def fresh(self) -> None:
        """Replace the used workers, so that the next batch runs in workers that have run nothing."""
        ...

    def confirm(self, run: Run, times: int = 3) -> list[Outcome]:
        """Execute `run` alone in a fresh worker, `times` times."""
        ...

    def allow(self, seconds: float | None) -> None:
        """Set the time limit of a run in seconds; None restores the initial limit."""
        ...
