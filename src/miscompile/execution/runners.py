"""Runners in front of another runner: one that caches outcomes, and one that uses all workers of a pool."""

from collections.abc import Sequence

from miscompile.base.digest import digest_bytes
from miscompile.core.case import Feed
from miscompile.core.outcome import Outcome
from miscompile.core.pool import Pool
from miscompile.core.ports import Runner
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor

_WAIT = 60.0
"""Seconds of one call of `Pool.poll`."""


class CachingRunner:
    """Executes no run twice, because bisection asks for the same reference run dozens of times.

    The cache key is program, feeds, target and build; purposes do not change outcomes. Confirmation of findings must
    execute every run again, so it uses `afresh`, the wrapped runner.
    """

    def __init__(self, runner: Runner) -> None:
        self.afresh = runner
        self._known: dict[tuple[str, tuple[str, ...], str, Build], Outcome] = {}
        self._feeds: dict[int, tuple[Feed, str]] = {}

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        """Return one outcome for each run; the wrapped runner gets the new ones in one batch."""
        keys = [self._key(run) for run in runs]
        fresh = {key: run for key, run in zip(keys, runs, strict=True) if key not in self._known}
        if fresh:
            self._known.update(zip(fresh, self.afresh.run(list(fresh.values())), strict=True))
        return [self._known[key] for key in keys]

    def _key(self, run: Run) -> tuple[str, tuple[str, ...], str, Build]:
        return run.case.program.digest, tuple(map(self._digest, run.case.feeds)), run.target, run.build

    def _digest(self, feed: Feed) -> str:
        """Return a digest of the feed's values, because oracles may build an equal feed anew each time."""
        if id(feed) not in self._feeds:
            parts = [part for value in feed for part in (f"{value.dtype}{value.shape}".encode(), _content(value))]
            self._feeds[id(feed)] = (feed, digest_bytes(*parts))  # keeps the feed alive, so that its id stays its own
        return self._feeds[id(feed)][1]


class ParallelRunner:
    """Spreads independent runs over all workers of a pool, in batches of `size`; `pool.run` uses one worker."""

    def __init__(self, pool: Pool, size: int = 4) -> None:
        self._pool, self._size = pool, size

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        """Return one outcome for each run."""
        tickets = [self._pool.submit(runs[start : start + self._size]) for start in range(0, len(runs), self._size)]
        done: dict[int, list[Outcome]] = {}
        while len(done) < len(tickets):
            done.update(self._pool.poll(_WAIT))
        return [outcome for ticket in tickets for outcome in done[ticket]]


def _content(value: Tensor) -> bytes:
    return repr(value.array.tolist()).encode() if value.dtype == "string" else value.array.tobytes()
