"""Verbs of `miscompile`, called as a user calls them."""

import subprocess
import sys
from collections.abc import Sequence

from miscompile.base.errors import UsageError


def called(words: Sequence[str], fine: Sequence[int] = (0,)) -> str:
    """Run `miscompile` with `words`, and return what it prints.

    Raises UsageError when its exit code is not among those in `fine`.
    """
    command = [sys.executable, "-m", "miscompile", *words]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    if ended.returncode not in fine:
        raise UsageError(f"`miscompile {' '.join(words)}` ended with {ended.returncode}: {ended.stderr.strip()[-500:]}")
    return ended.stdout
