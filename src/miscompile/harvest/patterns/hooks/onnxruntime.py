"""Run a test file and store every model that it passes to ONNX Runtime.

`python -m miscompile.harvest.patterns.hooks.onnxruntime TESTFILE OUT`. The hook wraps the construction of a session,
which every test performs. It cannot tell the pass under test; the passes that the model triggers are observed
afterwards.
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
    """Hook the construction of sessions; the returned function does nothing after a test."""
    import onnxruntime  # imported late, because it may be the package in the folder of the tests

    session = onnxruntime.InferenceSession
    original = session.__init__

    @functools.wraps(original)
    def begin(self: Any, path_or_bytes: Any, *args: Any, **words: Any) -> None:
        keep(recorder, path_or_bytes)
        original(self, path_or_bytes, *args, **words)

    session.__init__ = begin
    return nothing


def keep(recorder: PairRecorder, given: Any) -> None:
    """Store the model of a session: bytes, or a path with external data beside it."""
    try:
        data = given if isinstance(given, bytes) else _inlined(Path(os.fspath(given)))
    except Exception as error:  # noqa: BLE001 - an error of the hook must not change the test
        recorder.left(f"a model cannot be read ({line_of(error)})")
        return
    if data is None:
        recorder.left(f"models of more than {MOST_BYTES >> 20} MiB")
    else:
        recorder.pair(data)


def _inlined(path: Path) -> bytes | None:
    """Return the model at `path` with its external data inside; None when it is too large to store."""
    if path.stat().st_size > MOST_BYTES:
        return None
    data: bytes = onnx.load(path).SerializeToString()
    return data


if __name__ == "__main__":
    sys.exit(main(install))
