"""The size of a campaign's folder, which `--limit-disk` bounds, and the shortening of its logs."""

import os
from pathlib import Path

MEASURE_EVERY = 15.0
"""Seconds between two measurements: a folder with a thousand findings takes some ten milliseconds."""

LOGS = ("lanes.log", "triage.log")
"""Files to which child processes append, so that they may be shortened while they are open."""

MOST_LOG = 8 << 20
"""Size in bytes above which a log is shortened to its last quarter."""


def size_of(folder: Path) -> int:
    """Return the bytes of all files below a folder; files that vanish meanwhile count as nothing."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_blocks * 512
            except OSError:
                continue
    return total


def shorten(log: Path, most: int = MOST_LOG) -> None:
    """Keep the last quarter of a log that is larger than `most` bytes.

    Lines that a child appends between the reading and the writing are lost, which a log can bear.
    """
    try:
        size = log.stat().st_size
        if size <= most:
            return
        with log.open("r+b") as file:
            file.seek(size - most // 4)
            kept = file.read()
            file.seek(0)
            file.write(b"(earlier lines were removed)\n" + kept.partition(b"\n")[2])
            file.truncate()
    except OSError:
        return  # the folder may have been deleted, which the store notices
