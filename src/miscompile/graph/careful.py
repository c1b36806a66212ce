"""Calls of onnx's checker and inference that may abort the process: tried in a fork first, where that is asked for.

onnx is C++, and a broken model can make it read behind a vector, which ends the process (a `Split` with more results
than `num_outputs`, for instance: https://github.com/onnx/onnx/pull/8255). A fork costs milliseconds, so that only a
process that such a model has ended before pays for it.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar

from miscompile.base.errors import ModelError

_CAREFUL: ContextVar[bool] = ContextVar("careful", default=False)

PATIENCE = 60
"""Seconds after which a call in a fork counts as one that never ends."""


@contextmanager
def careful() -> Iterator[None]:
    """Try every call that is given to `must_survive` in a fork first, within this block."""
    token = _CAREFUL.set(True)
    try:
        yield
    finally:
        _CAREFUL.reset(token)


def must_survive(call: Callable[[], object]) -> None:
    """Raise ModelError if `call` ends a process by a signal. Does nothing outside of a `careful` block.

    What the call returns or raises in the fork is lost; the caller calls again.
    """
    if not _CAREFUL.get():
        return
    child = os.fork()
    if not child:
        signal.alarm(PATIENCE)
        with suppress(BaseException):
            call()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        raise ModelError(f"onnx's checker or inference dies of signal {os.WTERMSIG(status)} on the model")
