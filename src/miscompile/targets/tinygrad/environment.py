"""The environment variables of tinygrad's process; this module does not import tinygrad."""

import os
import shutil

from miscompile.base.errors import UsageError

FIXED = {
    "DEV": "CPU",
    "CACHELEVEL": "0",  # no cache on disk
    "CCACHE": "0",
    "NUM_CPU_THREADS": "1",
    "CPU_COUNT": "1",  # the name of the same in releases 0.12 and 0.13
    "PARALLEL": "0",  # no pool of compiling processes
    "TRACK_MATCH_STATS": "0",
    "PYTHONHASHSEED": "0",
}
"""Variables that make tinygrad quiet and single-threaded, without caches across builds."""


def variables() -> dict[str, str]:
    """Return the variables of the compiler's process, which tinygrad reads when it is imported."""
    return dict(FIXED)


def require_clang() -> None:
    """Raise UsageError unless the program that tinygrad runs on its C code can be found.

    The CPU device needs it for every renderer, its own x86 assembler among them, because its helper programs are C.
    """
    program = os.environ.get("CC", "clang")
    if shutil.which(program) is None:
        raise UsageError(
            f"tinygrad's CPU device compiles with {program}, which is not in PATH; install clang, or test tinygrad's "
            "interpreter instead: tinygrad{device=python}"
        )
