"""Microseconds that the wire costs per batch: two runs of a 10 KB program with small tensors. Run as a script."""

import timeit
from collections.abc import Callable

import numpy as np

from miscompile.core.case import Case, Port, Program
from miscompile.core.outcome import Observations, Outcome, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor
from miscompile.execution.frames import Frame, FrameBuffer
from miscompile.execution.wire import ReplyDecoder, ReplyEncoder, decode_batch, encode_batch

REPEATS = 2_000


def batch() -> list[Run]:
    """Return an unoptimised and an optimised run of one case with four inputs and three outputs."""
    feed = tuple(Tensor("float32", np.ones((2, 3, 4), np.float32)) for _ in range(4))
    ports = tuple(Port(f"x{index}", "float32", (2, 3, 4)) for index in range(4))
    case = Case(Program("onnx", bytes(10_000), ports, ports[:3]), (feed,))
    return [Run(case, "onnxruntime", Build(level)) for level in ("off", "full")]


def outcomes() -> list[Outcome]:
    """Return the results of both runs, bit-equal."""
    row = tuple(Tensor("float32", np.full((2, 3, 4), index, np.float32)) for index in range(3))
    return [Values((row,), Observations(0.0003, 0.0001, 1 << 26)) for _ in range(2)]


def received(data: bytes) -> list[Frame]:
    """Cut `data` into frames."""
    buffer = FrameBuffer()
    buffer.feed(data)
    return list(iter(buffer.take, None))


def replies() -> list[bytes]:
    """Encode both outcomes."""
    encoder = ReplyEncoder(1)
    return [encoder.encode(index, outcome) for index, outcome in enumerate(RESULTS)]


def answers(data: bytes) -> list[Outcome]:
    """Decode both outcomes."""
    decoder = ReplyDecoder()
    return [decoder.decode(frame).outcome for frame in received(data)]


def microseconds(work: Callable[[], object]) -> float:
    """Return the best mean over five rounds."""
    return min(timeit.repeat(work, number=REPEATS, repeat=5)) / REPEATS * 1e6


RUNS, RESULTS = batch(), outcomes()

if __name__ == "__main__":
    request, reply = encode_batch(1, RUNS), b"".join(replies())
    print(f"request {len(request)} bytes, replies {len(reply)} bytes; microseconds a batch")
    print(f"parent: encode request {microseconds(lambda: encode_batch(1, RUNS)):6.1f}")
    print(f"worker: decode request {microseconds(lambda: decode_batch(received(request)[0])):6.1f}")
    print(f"worker: encode replies {microseconds(replies):6.1f}")
    print(f"parent: decode replies {microseconds(lambda: answers(reply)):6.1f}")
