"""Attribution of a worker's death to a run: pure functions of the flight recorder and the printed text."""

import os
import re
import signal

from miscompile.core.outcome import Crashed, Observations, Outcome, OutOfMemory, TimedOut
from miscompile.execution.flight_recorder import IDLE, TAIL
from miscompile.execution.proxy import Batch, WorkerProxy
from miscompile.execution.worker import OUT_OF_MEMORY

_OUR_FRAMES = re.compile(
    r'^  File "(?:[^"\n]*/miscompile/(?!targets/toy/)(?:\w+/)*\w+\.py|<frozen runpy>|<string>)".*\n'
    r"|^Extension modules: .*\n",
    re.MULTILINE,
)
"""Lines of a fatal error about this package, but for the toy compiler, which is a part of it."""
_RUST_ABORT = re.compile(
    r"^thread '[^'\n]*'[^\n]* panicked at [^\n]*\npanic in a function that cannot unwind\n"
    r".*?^thread caused non-unwinding panic\. aborting\.\n?",
    re.MULTILINE | re.DOTALL,
)
"""The second panic of a Rust library whose first one reaches its C interface: only the interface's own frames."""


def printed_last(printed: str) -> str:
    """Return the end of a dead worker's printed text, without the stack frames of this package in a fatal error.

    These frames would displace the compiler's own message, and they differ from machine to machine. The same holds for
    the stack that Rust prints when a panic cannot leave a C interface; the panic itself stands before it and is kept.
    """
    return _OUR_FRAMES.sub("", _RUST_ABORT.sub("", printed))[-TAIL:]


def busy_with(proxy: WorkerProxy, batch: Batch) -> bool:
    """Tell whether the worker died of the first run of `batch` that has no outcome.

    It did not when it had not begun the batch, when it was waiting, when it had sent that outcome, or when it was
    killed for an earlier run that finished in the meantime.
    """
    place = proxy.recorder.read()
    if proxy.garbage:
        return True
    if place.sequence != batch.sequence or place.step == IDLE:
        return False
    if place.run < len(batch.outcomes) - batch.offset:
        return False
    return proxy.victim is None or proxy.victim == (place.sequence, place.run)


def outcome_of_death(
    proxy: WorkerProxy, batch: Batch, status: int | None, seconds: float, memory: int, cpu: float
) -> Outcome:
    """Return the outcome of the run that killed the worker.

    `status` is the wait status (None: lost with the zygote), `seconds` the time limit, `memory` the peak resident size
    in bytes, and `cpu` the CPU seconds of the worker's life. The compiler's part is what passed since it was called. An
    abort after a failed allocation is OutOfMemory, like the exception that other builds raise.
    """
    place = proxy.recorder.read()
    stage = place.stage if place.sequence == batch.sequence else "load"
    words = printed_last(proxy.printed.tail(16 * TAIL))
    if proxy.garbage:
        words = f"{words}\n(the worker sent what is no reply: {proxy.garbage})".lstrip()
    inside = max(0.0, cpu - proxy.recorder.cpu_before()) if stage in ("compile", "run") else 0.0
    seen = Observations(memory=memory, stderr=words, cpu_seconds=inside)
    if proxy.victim == (place.sequence, place.run):
        return TimedOut(stage, seconds, seen)
    code = -signal.SIGKILL if status is None else os.waitstatus_to_exitcode(status)
    if code == -signal.SIGABRT and OUT_OF_MEMORY.search(words):
        return OutOfMemory(stage, words[-500:], seen)
    return Crashed(stage, -code, seen)
