"""A runner that runs nothing twice, because bisection asks for the same reference run dozens of times."""

from collections.abc import Sequence

from miscompile.core.case import Feed
from miscompile.core.outcome import Outcome
from miscompile.core.ports import Runner
from miscompile.core.run import Build, Run


class CachingRunner:
    """Keeps the outcome of every run by program, feeds, target and build; purposes do not change outcomes.

    Not for the confirmation of findings, where running again is the point: that is what `afresh`, the wrapped runner,
    is there for.
    """

    def __init__(self, runner: Runner) -> None:
        self.afresh = runner
        self._known: dict[tuple[str, tuple[int, ...], str, Build], Outcome] = {}
        self._feeds: dict[int, Feed] = {}

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        """Return one outcome for each run; the wrapped runner gets the new ones in one batch."""
        keys = [self._key(run) for run in runs]
        fresh = {key: run for key, run in zip(keys, runs, strict=True) if key not in self._known}
        if fresh:
            self._known.update(zip(fresh, self.afresh.run(list(fresh.values())), strict=True))
        return [self._known[key] for key in keys]

    def _key(self, run: Run) -> tuple[str, tuple[int, ...], str, Build]:
        for feed in run.case.feeds:
            self._feeds[id(feed)] = feed  # keeps the feed alive, so that its id stays its own
        return run.case.program.digest, tuple(map(id, run.case.feeds)), run.target, run.build
