"""A bounded cache of the library's outcomes for tests that a later front end of the same library will run.

The library runs each test six times. Cached outcomes take memory, because results may be large.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from miscompile.core.outcome import Outcome, Values
from miscompile.core.ports import Runner
from miscompile.core.run import Run

KEPT = 256 << 20
"""Most bytes of cached results. The first results stay, because front ends run the same tests first."""


class LibraryCache:
    """Outcomes of libraries, by the digests of tests.

    `expect` announces the tests of each front end before any is run; call `begin` before a front end runs, `end` after.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._kept, self._size = kept, 0
        self._waited_for: Counter[str] = Counter()
        self._outcomes: dict[str, Outcome] = {}

    @property
    def size(self) -> int:
        """Bytes of the results that are kept."""
        return self._size

    def expect(self, digests: Iterable[str]) -> None:
        """Record that a front end will run these tests, each once."""
        self._waited_for.update(list(digests))

    def begin(self, digests: Iterable[str]) -> None:
        """Record that the front end runs now, so that only later ones need its tests."""
        self._waited_for.subtract(list(digests))

    def take(self, digest: str) -> Outcome | None:
        """Return the cached outcome of a test; remove it when no later front end runs the test."""
        found = self._outcomes.get(digest)
        if found is not None and self._waited_for[digest] <= 0:
            self._forget(digest)
        return found

    def keep(self, digest: str, outcome: Outcome) -> None:
        """Keep an outcome if a later front end runs the test and there is room."""
        size = _bytes_of(outcome)
        if self._waited_for[digest] > 0 and digest not in self._outcomes and self._size + size <= self._kept:
            self._outcomes[digest] = outcome
            self._size += size

    def end(self) -> None:
        """Remove the outcomes that no later front end needs, because a front end may stop before its last test."""
        for digest in [digest for digest in self._outcomes if self._waited_for[digest] <= 0]:
            self._forget(digest)

    def _forget(self, digest: str) -> None:
        self._size -= _bytes_of(self._outcomes.pop(digest))


class LibraryRunner:
    """A runner that runs the library only on tests that are not in the cache.

    `tests` maps the program of each test, by its identity, to the test's digest; runs of other targets than `library`
    pass through.
    """

    def __init__(self, runner: Runner, library: str, cache: LibraryCache) -> None:
        self._runner, self._library, self._cache = runner, library, cache
        self.tests: Mapping[int, str] = {}

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        """Return one outcome for each run."""
        known = [self._cache.take(digest) if (digest := self._digest(run)) else None for run in runs]
        asked = [run for run, outcome in zip(runs, known, strict=True) if outcome is None]
        fresh = iter(self._runner.run(asked) if asked else [])
        found = [next(fresh) if outcome is None else outcome for outcome in known]
        for run, outcome in zip(runs, found, strict=True):
            if digest := self._digest(run):
                self._cache.keep(digest, outcome)
        return found

    def _digest(self, run: Run) -> str:
        return self.tests.get(id(run.case.program), "") if run.target == self._library else ""


def _bytes_of(outcome: Outcome) -> int:
    if not isinstance(outcome, Values):
        return 0
    return sum(one.array.nbytes for results in outcome.results for one in results if one is not None)
