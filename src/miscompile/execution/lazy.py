"""A runner that is made when it is first asked, because most of those who might ask never do."""

from collections.abc import Callable, Sequence

from miscompile.core.outcome import Outcome
from miscompile.core.ports import Runner
from miscompile.core.run import Run


class LazyRunner:
    """A `Runner` in front of the one that `make` returns; whoever gave `make` closes it."""

    def __init__(self, make: Callable[[], Runner]) -> None:
        self._make = make
        self._made: Runner | None = None

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        """Return one outcome for each run."""
        if self._made is None:
            self._made = self._make()
        return self._made.run(runs)
