"""onnx's checker in a child process, because it is C++ code and some invalid models crash it.

Run as `python -m miscompile.producers.disruptive.checker`: reads models, each after its length in eight bytes, and
prints one line of JSON for each: the error message.
"""

import json
import struct
import sys
from typing import BinaryIO

import onnx

from miscompile.base.child import Conversation
from miscompile.graph.typing import brief

PATIENCE = 10.0
"""Timeout of one check in seconds; exceeding it counts as a crash."""

_LENGTH = struct.Struct("<Q")


def refusal_of(payload: bytes) -> str:
    """Return the error of onnx's full check (types, strict inference) of a model; an empty text if it is valid."""
    try:
        onnx.checker.check_model(payload, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, RuntimeError, ValueError) as error:
        return brief(error) or "refused"
    return ""


class ChildChecker:
    """The child process, started on first use and restarted after a crash; it ends with this process."""

    def __init__(self) -> None:
        self._child: Conversation | None = None

    def __call__(self, payload: bytes) -> str | None:
        """Return the error of `refusal_of` for a model; None when the check crashes or exceeds its timeout."""
        self._child = child = self._child or Conversation([sys.executable, "-m", __name__])
        child.write(_LENGTH.pack(len(payload)) + payload)
        line = child.read_line(PATIENCE)
        if line is None:
            self.close()
            return None
        return str(json.loads(line))

    def close(self) -> None:
        """End the process; the next check starts a new one."""
        child, self._child = self._child, None
        if child is not None:
            child.end(patience=0.0)


def serve(models: BinaryIO, answers: BinaryIO) -> None:
    """Check models one after the other until end of input."""
    while len(head := models.read(_LENGTH.size)) == _LENGTH.size:
        payload = models.read(_LENGTH.unpack(head)[0])
        answers.write(json.dumps(refusal_of(payload)).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
