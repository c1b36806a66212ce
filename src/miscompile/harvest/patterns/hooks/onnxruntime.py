"""Run a file of tests and keep every model that it gives to ONNX Runtime.

`python -m miscompile.harvest.patterns.hooks.onnxruntime TESTFILE OUT`. The hook wraps the construction of a session,
which every test performs. It does not know the pass; the passes that the model triggers are observed afterwards.
"""

# ruff: noqa: ANN401 - ONNX Runtime's arguments have no types

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx

from miscompile.harvest.patterns.hooks.recording import MOST_BYTES, PairRecorder, line_of, main, nothing


def install(recorder: PairRecorder) -> Callable[[], None]:
    """Hook the making of sessions; nothing is left to do after a test."""
    import onnxruntime  # late: it may be the one in the folder of the tests

    session = onnxruntime.InferenceSession
    original = session.__init__

    @functools.wraps(original)
    def begin(self: Any, path_or_bytes: Any, *args: Any, **words: Any) -> None:
        keep(recorder, path_or_bytes)
        original(self, path_or_bytes, *args, **words)

    session.__init__ = begin
    return nothing


def keep(recorder: PairRecorder, given: Any) -> None:
    """Write down the model that a session is made of: bytes, or a path with external data beside it."""
    try:
        data = given if isinstance(given, bytes) else _inlined(Path(os.fspath(given)))
    except Exception as error:  # noqa: BLE001 - whatever is wrong with it, the test goes on as if nobody looked
        recorder.left(f"a model cannot be read ({line_of(error)})")
        return
    if data is None:
        recorder.left(f"models of more than {MOST_BYTES >> 20} MiB")
    else:
        recorder.pair(data)


def _inlined(path: Path) -> bytes | None:
    """Return the model at `path` with its external data inside; None when it is too large to be asked for."""
    if path.stat().st_size > MOST_BYTES:
        return None
    data: bytes = onnx.load(path).SerializeToString()
    return data


if __name__ == "__main__":
    sys.exit(main(install))
