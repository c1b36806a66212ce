"""A runner that spreads independent runs over all workers of a pool."""

from collections.abc import Sequence

from miscompile.core.outcome import Outcome
from miscompile.core.pool import Pool
from miscompile.core.run import Run

_WAIT = 60.0


class ParallelRunner:
    """A `Runner`: `pool.run` gives all runs to one worker, this one gives each worker batches of `size` runs."""

    def __init__(self, pool: Pool, size: int = 4) -> None:
        self._pool, self._size = pool, size

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        """Return one outcome for each run."""
        tickets = [self._pool.submit(runs[start : start + self._size]) for start in range(0, len(runs), self._size)]
        done: dict[int, list[Outcome]] = {}
        while len(done) < len(tickets):
            done.update(self._pool.poll(_WAIT))
        return [outcome for ticket in tickets for outcome in done[ticket]]
