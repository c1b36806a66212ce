"""Temporary folders for files that a compiler reads and writes during a build, in memory, removed after the build.

A worker that crashes removes nothing; the next worker removes its folders.
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
    """Yield an empty folder of this process, below `root` (None: in memory if the system supports it)."""
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
