"""The switch for OpenVINO's passes, which is `switch.cpp`: its compilation, and the call that sets it.

Standalone scripts contain both files where they switch passes. The worker's library (`observer.py`) contains
`switch.cpp` too, and counts the changes of the passes.
"""

import ctypes
from collections.abc import Iterable, Sequence


def compile_command(compiler: Sequence[str], headers: str, library: str) -> list[str]:
    """Return the command that makes a library of C++ to be preloaded, but for its input and output.

    `headers` is the folder of OpenVINO's headers, `library` the name of the file of its main library.
    """
    options = ["-std=c++17", "-O2", "-shared", "-fPIC", f'-DLIBRARY="{library}"', "-isystem", headers]
    return [*compiler, *options]


def skip(names: Iterable[str]) -> None:
    """Skip exactly the passes `names` in all later compilations."""
    ctypes.CDLL(None).skip_passes(" ".join(names).encode())
