"""What travels between pool and worker, as frames.

A request holds a batch of runs; a program, a case or a tensor that several runs share (the same object) is stored
once. Recipes stay in the parent. A reply holds the outcome of one run of the batch: outcomes travel as they arise, so
that those that came before a death are not lost.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, get_args

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import ExecutionError
from miscompile.core.case import Case, Port, Program
from miscompile.core.outcome import (
    Crashed,
    Observations,
    Outcome,
    OutOfMemory,
    Raised,
    Rejected,
    Stage,
    TimedOut,
    Unsupported,
    Values,
)
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor
from miscompile.execution.frames import Body, Frame, Json, strict

STAGES: tuple[Stage, ...] = get_args(Stage)

# Tensors -------------------------------------------------------------------------------------------------------------


def _raw(tensor: Tensor) -> bytes | list[str]:
    """Return the elements in C order. Raises ExecutionError when the storage is not that of the element type."""
    array = tensor.array
    if tensor.dtype not in DTYPES or (array.dtype != DTYPES[tensor.dtype].storage and array.dtype.kind != "U"):
        raise ExecutionError(f"a tensor of element type {tensor.dtype} cannot lie in a numpy array of {array.dtype}")
    return array.tobytes() if tensor.dtype != "string" else [_text(element) for element in array.ravel().tolist()]


def _text(element: object) -> str:
    if isinstance(element, bytes):
        return element.decode("utf-8", "surrogateescape")
    return element if isinstance(element, str) else str(element)


def _put_tensor(tensor: Tensor, raw: bytes | list[str], body: Body) -> Json:
    return [tensor.dtype, tensor.array.shape, body.add(raw) if isinstance(raw, bytes) else raw]


def _get_tensor(entry: Json, body: bytes) -> Tensor:
    dtype, shape, content = entry
    if dtype != "string":
        if content < 0 or (shape and min(shape) < 0):  # numpy would take these, and read what is not ours
            raise ValueError("a tensor lies outside the frame")
        return Tensor(dtype, np.ndarray(tuple(shape), DTYPES[dtype].storage, body, content))
    if len(content) != math.prod(shape) or not all(isinstance(element, str) for element in content):
        raise ValueError("a string tensor has too few or too many elements, or some that are no strings")
    array = np.empty(len(content), object)
    array[:] = content
    return Tensor(dtype, array.reshape(shape))


# Requests ------------------------------------------------------------------------------------------------------------


class _Numbered:
    """Numbers objects by identity, so that what runs share is stored once."""

    def __init__(self, describe: Callable[[Any], Json]) -> None:
        self.entries: list[Json] = []
        self._numbers: dict[int, int] = {}
        self._describe = describe

    def number(self, thing: object) -> int:
        """Return the number of `thing`, describing it on first sight."""
        known = self._numbers.get(id(thing))
        if known is None:
            entry = self._describe(thing)
            known = self._numbers[id(thing)] = len(self.entries)
            self.entries.append(entry)
        return known


def encode_batch(sequence: int, runs: Sequence[Run]) -> bytes:
    """Return the request frame of batch number `sequence`. Raises ExecutionError for a tensor stored wrongly."""
    body = Body()
    tensors = _Numbered(lambda tensor: _put_tensor(tensor, _raw(tensor), body))
    programs = _Numbered(lambda program: _put_program(program, body))
    cases = _Numbered(
        lambda case: [programs.number(case.program), [[tensors.number(t) for t in feed] for feed in case.feeds]]
    )
    entries = [
        [cases.number(r.case), r.target, b.level, sorted(b.disabled), b.threads, b.device, b.observe, r.purpose]
        for r in runs
        for b in (r.build,)
    ]
    header = {"s": sequence, "t": tensors.entries, "p": programs.entries, "c": cases.entries, "r": entries}
    return body.frame(header)


@strict
def decode_batch(frame: Frame) -> tuple[int, tuple[Run, ...]]:
    """Return the number and the runs of a request; cases have empty recipes. Raises ExecutionError if malformed.

    Arrays are read-only views of the frame's body.
    """
    header, body = frame
    tensors = [_get_tensor(entry, body) for entry in header["t"]]
    programs = [_get_program(entry, body) for entry in header["p"]]
    cases = [
        Case(programs[number], tuple(tuple(tensors[index] for index in feed) for feed in feeds))
        for number, feeds in header["c"]
    ]
    runs = tuple(
        Run(cases[case], target, Build(level, frozenset(disabled), threads, device, observe), purpose)
        for case, target, level, disabled, threads, device, observe, purpose in header["r"]
    )
    return int(header["s"]), runs


def _put_program(program: Program, body: Body) -> Json:
    ports = [[[p.name, p.dtype, p.shape, p.exact] for p in side] for side in (program.inputs, program.outputs)]
    return [program.kind, body.add(program.payload), len(program.payload), *ports]


def _get_program(entry: Json, body: bytes) -> Program:
    kind, offset, length, inputs, outputs = entry
    if not 0 <= offset <= offset + length <= len(body):
        raise ValueError("a program lies outside the frame")
    return Program(kind, body[offset : offset + length], _get_ports(inputs), _get_ports(outputs))


def _get_ports(entries: Json) -> tuple[Port, ...]:
    return tuple(
        Port(name, dtype, None if shape is None else tuple(shape), exact) for name, dtype, shape, exact in entries
    )


# Replies -------------------------------------------------------------------------------------------------------------


class Reply(NamedTuple):
    """The outcome of run number `run` of batch `sequence`; `leaving` says that the worker ends itself after it."""

    sequence: int
    run: int
    outcome: Outcome
    leaving: bool


class ReplyEncoder:
    """Encodes the outcomes of one batch, in order.

    A result with the bits of an earlier one for the same feed and output is sent as a reference to it.
    """

    def __init__(self, sequence: int) -> None:
        self._sequence = sequence
        self._sent: dict[tuple[int, int], list[tuple[Tensor, bytes | list[str], int]]] = {}
        self._count = 0

    def encode(self, index: int, outcome: Outcome, leaving: bool = False) -> bytes:
        """Return the reply frame of run `index`. Raises ExecutionError for a tensor stored wrongly."""
        body = Body()
        seen = outcome.observations
        match outcome:
            case Values(results):
                content: Json = [
                    [None if t is None else self._result(t, (row, column), body) for column, t in enumerate(outputs)]
                    for row, outputs in enumerate(results)
                ]
            case Rejected(stage, message) | Unsupported(stage, message) | OutOfMemory(stage, message):
                content = [stage, message]
            case Raised(stage, kind, message, frames):
                content = [stage, kind, message, frames]
            case Crashed(stage, number) | TimedOut(stage, number):
                content = [stage, number]
        notes = [seen.compile_seconds, seen.run_seconds, seen.memory, seen.passes, seen.stderr, seen.cpu_seconds]
        return body.frame([self._sequence, index, leaving, type(outcome).__name__, notes, content])

    def _result(self, tensor: Tensor, place: tuple[int, int], body: Body) -> Json:
        raw = _raw(tensor)
        sent = self._sent.setdefault(place, [])
        for earlier, bits, number in sent:
            if bits == raw and earlier.dtype == tensor.dtype and earlier.array.shape == tensor.array.shape:
                return number
        entry = _put_tensor(tensor, raw, body)
        sent.append((tensor, raw, self._count))
        self._count += 1
        return entry


class ReplyDecoder:
    """Decodes the replies of one batch; a reference becomes the very Tensor object it refers to."""

    def __init__(self) -> None:
        self._tensors: list[Tensor] = []

    @strict
    def decode(self, frame: Frame) -> Reply:
        """Return the reply that `frame` holds. Raises ExecutionError if it is malformed."""
        sequence, index, leaving, kind, notes, content = frame.header
        compile_seconds, run_seconds, memory, passes, stderr, cpu = notes
        times = float(compile_seconds), float(run_seconds)
        seen = Observations(*times, int(memory), tuple(passes), _string(stderr), float(cpu))
        if kind == "Values":
            outcome: Outcome = Values(tuple(tuple(self._results(row, frame.body)) for row in content), seen)
        else:
            outcome = _get_failure(kind, content, seen)
        return Reply(int(sequence), int(index), outcome, bool(leaving))

    def _results(self, row: Json, body: bytes) -> Iterator[Tensor | None]:
        for entry in row:
            if entry is None:
                yield None
            elif isinstance(entry, int):
                if entry < 0:
                    raise ValueError("a reference to nothing")
                yield self._tensors[entry]
            else:
                self._tensors.append(_get_tensor(entry, body))
                yield self._tensors[-1]


def _get_failure(kind: str, content: Json, seen: Observations) -> Outcome:
    stage, *rest = content
    if stage not in STAGES:
        raise ValueError(f"no stage {stage}")
    match kind, rest:
        case "Rejected", [str(message)]:
            return Rejected(stage, message, seen)
        case "Unsupported", [str(message)]:
            return Unsupported(stage, message, seen)
        case "OutOfMemory", [str(message)]:
            return OutOfMemory(stage, message, seen)
        case "Raised", [str(error), str(message), frames]:
            return Raised(stage, error, message, tuple(map(_string, frames)), seen)
        case "Crashed", [int(number)]:
            return Crashed(stage, number, seen)
        case "TimedOut", [int(seconds) | float(seconds)]:
            return TimedOut(stage, float(seconds), seen)
    raise ValueError(f"no outcome {kind} with {len(rest)} parts")


def _string(value: Json) -> str:
    if not isinstance(value, str):
        raise TypeError("text expected")
    return value
