"""What the library said of tests that another front end of the same library is still to run, within bounds.

Asking a library costs six runs of a test, keeping its answer costs memory: results are as large as the tests make them.
"""

from collections import Counter
from collections.abc import Iterable

from miscompile.oracles.library_reference import Dropped, Reference

KEPT = 256 << 20
"""Bytes of results that are kept at most. Front ends take the same tests first, so that what came first stays."""


class Answers:
    """Answers of libraries, by the digests of tests.

    `expect` names the tests of each front end before any is run; `begin` says that one runs now, `end` that it is done.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._kept, self._size = kept, 0
        self._waited_for: Counter[str] = Counter()
        self._answers: dict[str, Reference | Dropped] = {}

    @property
    def size(self) -> int:
        """Bytes of the results that are kept."""
        return self._size

    def expect(self, digests: Iterable[str]) -> None:
        """Note that a front end will run these tests, each once."""
        self._waited_for.update(list(digests))

    def begin(self, digests: Iterable[str]) -> None:
        """Note that the front end runs now: from here on only later ones need what it keeps."""
        self._waited_for.subtract(list(digests))

    def take(self, digest: str) -> Reference | Dropped | None:
        """Return what is known of a test; forget it when no later front end runs it."""
        found = self._answers.get(digest)
        if found is not None and self._waited_for[digest] <= 0:
            self._forget(digest)
        return found

    def keep(self, digest: str, answer: Reference | Dropped) -> None:
        """Keep an answer if a later front end runs the test and there is room."""
        size = answer.size if isinstance(answer, Reference) else 0
        if self._waited_for[digest] > 0 and digest not in self._answers and self._size + size <= self._kept:
            self._answers[digest] = answer
            self._size += size

    def end(self) -> None:
        """Forget what no later front end runs: a front end may stop before its last test."""
        for digest in [digest for digest in self._answers if self._waited_for[digest] <= 0]:
            self._forget(digest)

    def _forget(self, digest: str) -> None:
        answer = self._answers.pop(digest)
        self._size -= answer.size if isinstance(answer, Reference) else 0
