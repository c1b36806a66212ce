"""onnx's checker and inference in a child process, because they are C++ code and some invalid models crash them.

Run as `python -m miscompile.producers.disruptive.checker`: reads models, each after its length in eight bytes, and
prints one line of JSON for each: the error message. Where the highest bit of the length is set, the line holds the
types of the model's inner values instead.
"""

import json
import struct
import sys
from collections.abc import Mapping
from typing import Any, BinaryIO

import onnx

from miscompile.base.child import Conversation
from miscompile.base.dtypes import BY_CODE
from miscompile.graph.typing import brief

PATIENCE = 10.0
"""Timeout of one check in seconds; exceeding it counts as a crash."""

_LENGTH = struct.Struct("<Q")
_INFER = 1 << 63

ResultTypes = Mapping[str, tuple[str, int]]
"""Element type and rank by name, for the values of which both are known."""


def refusal_of(payload: bytes) -> str:
    """Return the error of onnx's full check (types, strict inference) of a model; an empty text if it is valid."""
    try:
        onnx.checker.check_model(payload, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError, RuntimeError, ValueError) as error:
        return brief(error) or "refused"
    return ""


def result_types(payload: bytes) -> ResultTypes:
    """Return the types of a model's inner values, as far as onnx's inference finds them in spite of errors."""
    try:
        found = onnx.shape_inference.infer_shapes(onnx.load_from_string(payload), strict_mode=False)
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError):
        return {}
    types = {info.name: info.type.tensor_type for info in found.graph.value_info}
    known = {name: kind for name, kind in types.items() if kind.elem_type in BY_CODE and kind.HasField("shape")}
    return {name: (BY_CODE[kind.elem_type].name, len(kind.shape.dim)) for name, kind in known.items()}


class ChildChecker:
    """The child process, started on first use and restarted after a crash; it ends with this process."""

    def __init__(self) -> None:
        self._child: Conversation | None = None

    def __call__(self, payload: bytes) -> str | None:
        """Return the error of `refusal_of` for a model; None when the check crashes or exceeds its timeout."""
        line = self._ask(len(payload), payload)
        return None if line is None else str(json.loads(line))

    def types(self, payload: bytes) -> ResultTypes:
        """Return the types that `result_types` finds; none when inference crashes or exceeds its timeout."""
        line = self._ask(len(payload) | _INFER, payload)
        found: dict[str, list[Any]] = {} if line is None else json.loads(line)
        return {name: (str(dtype), int(rank)) for name, (dtype, rank) in found.items()}

    def _ask(self, head: int, payload: bytes) -> str | bytes | None:
        self._child = child = self._child or Conversation([sys.executable, "-m", __name__])
        child.write(_LENGTH.pack(head) + payload)
        line = child.read_line(PATIENCE)
        if line is None:
            self.close()
        return line

    def close(self) -> None:
        """End the process; the next check starts a new one."""
        child, self._child = self._child, None
        if child is not None:
            child.end(patience=0.0)


def serve(models: BinaryIO, answers: BinaryIO) -> None:
    """Check models one after the other until end of input."""
    while len(head := models.read(_LENGTH.size)) == _LENGTH.size:
        (number,) = _LENGTH.unpack(head)
        payload = models.read(number & ~_INFER)
        answer = result_types(payload) if number & _INFER else refusal_of(payload)
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
