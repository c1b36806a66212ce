"""Runs a script and prints the native frames of its death: `python -I first_access_child.py SCRIPT`.

It needs the standard library alone, because it runs under the Python of a compiler's environment. glibc's checks run
inside of the allocator, so the handler allocates nothing from it: all buffers exist before, and the frames go straight
to the descriptor.
"""

import ctypes
import os
import runpy
import signal
import sys

TRACE = b"\ntrace of the death: signal %d\n"
_DEEPEST = 48
_HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_int)


def trace_deaths() -> object:
    """Install handlers that print the native frames to descriptor 2 and end the process; keep the result alive."""
    libc = ctypes.CDLL(None)
    frames = (ctypes.c_void_p * _DEEPEST)()
    libc.backtrace(frames, _DEEPEST)  # loads a library the first time, which allocates
    words: dict[int, bytes] = {number: TRACE % number for number in (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS)}

    def tell(number: int) -> None:
        libc.signal(number, None)
        os.write(2, words[number])
        libc.backtrace_symbols_fd(frames, libc.backtrace(frames, _DEEPEST), 2)
        os.kill(os.getpid(), number)

    handler = _HANDLER(tell)
    libc.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
    for number in words:
        libc.signal(number, ctypes.cast(handler, ctypes.c_void_p))
    return handler


if __name__ == "__main__":
    kept = trace_deaths()
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
