"""Folders for files that a compiler reads and writes while it builds: in memory, and gone when the build is done.

A worker may die of what it builds, and then removes nothing; the next one does that for it.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() and os.access("/dev/shm", os.W_OK) else None


@contextlib.contextmanager
def scratch(root: str | None = None) -> Iterator[Path]:
    """Yield an empty folder of this process, below `root` (None: in memory where the system has that)."""
    base = Path(root or _MEMORY or tempfile.gettempdir(), f"miscompile-files-{os.getuid()}")
    base.mkdir(mode=0o700, exist_ok=True)
    for left in base.iterdir():
        if left.name.isdigit() and not Path("/proc", left.name).exists():
            shutil.rmtree(left, ignore_errors=True)
    folder = base / str(os.getpid())
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
