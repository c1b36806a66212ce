"""What a run may use, and how much longer it may take on a busy machine."""

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a worker.

    `seconds` for one run, wall-clock, on a quiet machine (`strain`). `memory` in bytes of address space on top of what
    the compiler takes when it is imported; 0 means no limit, which a compiler that reserves address space without using
    it needs. `output` in bytes that a run may print. `recycle` is the number of batches after which a
    worker is replaced, before leaks matter. `history` is the number of its batches that are remembered with all their
    tensors, so that one can ask what ran before a run; 0 where nobody will.
    """

    seconds: float = 10.0
    memory: int = 4 << 30
    output: int = 1 << 20
    recycle: int = 20_000
    history: int = 50


MOST_STRAIN = 4.0


def strain() -> float:
    """Return by how much longer a run may take than on a quiet machine: 1 to 4, from the load on each CPU.

    Without it a crowded machine makes hangs of what is merely slow, and these would be reported.
    """
    return min(MOST_STRAIN, max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0))))
