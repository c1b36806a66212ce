"""onnx's checker in a child process, because it is C++ code and some invalid models crash it.

Run as `python -m miscompile.producers.disruptive.checker`: reads models, each after its length in eight bytes, and
answers each with one line of JSON: the error message.
"""

import json
import select
import struct
import subprocess
import sys
from contextlib import suppress
from typing import BinaryIO

import onnx

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
        self._child: subprocess.Popen[bytes] | None = None

    def __call__(self, payload: bytes) -> str | None:
        """Return the result of `refusal_of`; None when the check crashes on the model or exceeds `PATIENCE`."""
        child = self._child or self._start()
        assert child.stdin is not None
        assert child.stdout is not None
        line = b""
        with suppress(BrokenPipeError):
            child.stdin.write(_LENGTH.pack(len(payload)) + payload)
            child.stdin.flush()
            if select.select([child.stdout], [], [], PATIENCE)[0]:
                line = child.stdout.readline()
        if not line.endswith(b"\n"):
            self.close()
            return None
        return str(json.loads(line))

    def close(self) -> None:
        """End the process; the next check starts a new one."""
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        for pipe in (child.stdin, child.stdout):
            with suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()
        child.wait()

    def _start(self) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", __name__]
        pipe = subprocess.PIPE
        self._child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
        return self._child


def serve(models: BinaryIO, answers: BinaryIO) -> None:
    """Answer one model after another until end of input."""
    while len(head := models.read(_LENGTH.size)) == _LENGTH.size:
        payload = models.read(_LENGTH.unpack(head)[0])
        answers.write(json.dumps(refusal_of(payload)).encode() + b"\n")
        answers.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)
