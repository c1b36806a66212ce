"""Confirmation of a death that depends on the earlier runs of its worker: the run is repeated after these runs."""

from collections.abc import Sequence
from typing import Protocol

from miscompile.core.outcome import Outcome
from miscompile.core.run import Run


class AloneRunner(Protocol):
    """Executes batches in processes that have run nothing before."""

    def run_alone(self, runs: Sequence[Run]) -> list[Outcome]:
        """Return one outcome for each run."""
        ...


def confirm_with_history(runner: AloneRunner, run: Run, history: Sequence[Run], times: int = 3) -> list[Outcome]:
    """Execute `history` and then `run` in a fresh worker, `times` times; return the outcomes of `run` alone.

    When a run of the history itself ends the worker, the next worker executes only the runs that follow it.
    """
    return [runner.run_alone([*history, run])[-1] for _ in range(times)]
