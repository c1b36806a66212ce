"""The limits of a run, and the factor by which a busy machine extends its time limit."""

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a worker.

    `seconds` of wall-clock time for one run on an idle machine (see `strain`); a run that has taken so many seconds of
    CPU time has exceeded it as well, however busy the machine is. `memory` in bytes of address space beyond that of the
    imported compiler; 0 means no limit, which a compiler needs that reserves address space without using it. `output`
    in bytes that a run may print. `recycle` is the number of batches after which a worker is replaced, because
    compilers leak memory.
    """

    seconds: float = 10.0
    memory: int = 4 << 30
    output: int = 1 << 20
    recycle: int = 20_000


AFTER_HANG, LEAST_AFTER_HANG = 0.2, 3.0
"""The share of the time limit, and the seconds, that a run gets at least once another run of its batch has hung: the
builds of one program mostly hang together, and each would cost the whole limit."""


def seconds_after_hang(seconds: float) -> float:
    """Return the time limit of the runs of a batch after one of them has exceeded `seconds`."""
    return min(seconds, max(AFTER_HANG * seconds, LEAST_AFTER_HANG))


MOST_STRAIN = 4.0

_USER, _SYSTEM = 11, 12
"""Places of the CPU times in clock ticks among the fields of `/proc/PID/stat` that follow the name (proc(5))."""


def strain() -> float:
    """Return the factor, 1 to 4, by which the load of each CPU extends the time limit of a run.

    Without it, slow runs on a busy machine would be reported as hangs.
    """
    return min(MOST_STRAIN, max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0))))


def cpu_seconds_of(pid: int) -> float:
    """Return the CPU time of a process in seconds; 0.0 where the system does not say, or when it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("ascii", "replace")
    except OSError:
        return 0.0
    words = text.rpartition(")")[2].split()  # the name of the process may contain anything
    return (int(words[_USER]) + int(words[_SYSTEM])) / os.sysconf("SC_CLK_TCK")
