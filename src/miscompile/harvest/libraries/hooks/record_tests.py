"""Runs one file of a library's tests under the hooks of that library, in this process.

Run as `python -m miscompile.harvest.libraries.hooks.record_tests LIBRARY TESTFILE OUT LIMIT`, with the folder
above the file's package first in the import path.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from miscompile.harvest.libraries.hooks.recording import Collector, Lines, hook_of
from miscompile.harvest.patterns.hooks.recording import run_tests


class _Named(Collector):
    """A collector that takes the current test's name from the lines."""

    def __init__(self, lines: Lines, limit: int) -> None:
        self._lines = lines
        super().__init__(lines.instance, "tests", limit)

    @property
    def test(self) -> str:
        return self._lines.test

    @test.setter
    def test(self, name: str) -> None:
        self._lines.test = name


def main(words: Sequence[str]) -> int:
    """Run a test file, and write the recorded uses of the library to the folder OUT."""
    library, path, out, limit = words[0], Path(words[1]), Path(words[2]), int(words[3])
    lines = Lines(out)
    into = _Named(lines, limit)
    stop = hook_of(library)(into)
    try:
        code = run_tests(path, lines, lambda: lines.leave(into.left))
    finally:
        stop()
    lines.leave(into.left)
    lines.write(exit=code)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
