"""What a piece of work costs this process: CPU time with that of its children, and memory.

Scripts contain these functions, so this module needs the standard library alone.
"""

import os
import resource
import time


def cpu_seconds() -> float:
    """Return the CPU seconds of all threads of this process so far, and of children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def resident_bytes(peak: bool = False) -> int:
    """Return the resident memory of this process in bytes, or its `peak` since `forget_peak`; 0 where it is unknown."""
    wanted = "VmHWM:" if peak else "VmRSS:"
    try:
        with open("/proc/self/status", encoding="ascii") as lines:
            return next((int(line.split()[1]) << 10 for line in lines if line.startswith(wanted)), 0)
    except OSError:
        return 0


def forget_peak() -> bool:
    """Let the peak of the resident memory start anew; return whether the system could do that."""
    try:
        descriptor = os.open("/proc/self/clear_refs", os.O_WRONLY)
    except OSError:
        return False
    try:
        return os.write(descriptor, b"5") == 1
    except OSError:
        return False
    finally:
        os.close(descriptor)
