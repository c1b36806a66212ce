"""The messages between pool and worker, as frames.

A request holds a batch of runs; a program, a case or a tensor that several runs share (the same object) is stored
once. Recipes stay in the parent. A reply holds the outcome of one run of the batch, so that the outcomes before a death
are kept.
"""

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import astuple
from typing import Any, NamedTuple, TypeAlias, get_args

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import ExecutionError
from miscompile.base.specs import Spec, spec_text, stored_spec
from miscompile.core.case import Case, Port, Program
from miscompile.core.outcome import (
    Crashed,
    Defect,
    Measured,
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
from miscompile.core.tensor import Tensor, text_of
from miscompile.execution.frames import Frame, FrameBody, HeaderValue, strict

STAGES: tuple[Stage, ...] = get_args(Stage)

OURS = "miscompile.SpecError"
"""The error kind of a run whose options are invalid; no compiler has a class of this name."""

_STORAGE = {name: info.storage for name, info in DTYPES.items()}

# Tensors -------------------------------------------------------------------------------------------------------------

Bits: TypeAlias = tuple[str, tuple[int, ...], bytes | list[str]]
"""A tensor as its element type, its shape and its elements in C order; equal when all bits are."""


def _bits(tensor: Tensor) -> Bits:
    """Raises ExecutionError when the storage is not that of the element type."""
    dtype, array = tensor.dtype, tensor.array
    if array.dtype is _STORAGE.get(dtype) and dtype != "string":
        return dtype, array.shape, array.tobytes()
    if dtype not in _STORAGE or (array.dtype != _STORAGE[dtype] and array.dtype.kind != "U"):
        raise ExecutionError(f"a tensor of element type {dtype} cannot lie in a numpy array of {array.dtype}")
    raw = array.tobytes() if dtype != "string" else [text_of(element) for element in array.ravel().tolist()]
    return dtype, array.shape, raw


def _put_tensor(bits: Bits, body: FrameBody) -> HeaderValue:
    dtype, shape, raw = bits
    return dtype, shape, body.add(raw) if isinstance(raw, bytes) else raw


def _get_tensor(entry: HeaderValue, body: bytes) -> Tensor:
    dtype, shape, content = entry
    if dtype != "string":
        if content < 0 or (shape and min(shape) < 0):  # numpy would accept these, and read foreign memory
            raise ValueError("a tensor lies outside the frame")
        return Tensor(dtype, np.ndarray(tuple(shape), _STORAGE[dtype], body, content))
    if len(content) != math.prod(shape) or not all(isinstance(element, str) for element in content):
        raise ValueError("a string tensor has too few or too many elements, or some that are no strings")
    array = np.empty(len(content), object)
    array[:] = content
    return Tensor(dtype, array.reshape(shape))


# Requests ------------------------------------------------------------------------------------------------------------


class _Numbered:
    """Numbers objects by identity, so that an object that several runs share is stored once."""

    def __init__(self, describe: Callable[[Any], HeaderValue]) -> None:
        self.entries: list[HeaderValue] = []
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
    body = FrameBody()
    tensors = _Numbered(lambda tensor: _put_tensor(_bits(tensor), body))
    programs = _Numbered(lambda program: _put_program(program, body))
    cases = _Numbered(
        lambda case: [programs.number(case.program), [[tensors.number(t) for t in feed] for feed in case.feeds]]
    )
    entries = [
        (
            cases.number(r.case),
            r.target,
            b.level,
            "\n".join(b.disabled),
            b.threads,
            b.device,
            b.observe,
            r.purpose,
            *more,
        )
        for r in runs
        for b in (r.build,)
        for more in (_put_more(b),)
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
        Run(
            cases[case], target, Build(level, _get_names(disabled), threads, device, observe, *_get_more(more)), purpose
        )
        for case, target, level, disabled, threads, device, observe, purpose, *more in header["r"]
    )
    return int(header["s"]), runs


def _get_names(lines: str) -> frozenset[str]:
    """Return the names of passes, one a line: a single text is quicker to write and read than dozens."""
    return frozenset(lines.split("\n")) if lines else frozenset()


def _put_more(build: Build) -> tuple[str, str, int] | tuple[()]:
    """Return the transform, the pass sequence and the measurement of a build, nothing for most builds."""
    if not (build.transform or build.sequence or build.measure):
        return ()
    return spec_text(build.transform), "\n".join(build.sequence), build.measure


def _get_more(more: HeaderValue) -> tuple[Spec | None, tuple[str, ...], int]:
    """Return the transform, the pass sequence and the measurement of a build, which most builds lack."""
    if not more:
        return None, (), 0
    transform, sequence, measure = more
    return stored_spec(transform), tuple(sequence.split("\n")) if sequence else (), int(measure)


def _put_program(program: Program, body: FrameBody) -> HeaderValue:
    ports = [[(p.name, p.dtype, p.shape, p.exact) for p in side] for side in (program.inputs, program.outputs)]
    return [program.kind, body.add(program.payload), len(program.payload), *ports]


def _get_program(entry: HeaderValue, body: bytes) -> Program:
    kind, offset, length, inputs, outputs = entry
    if not 0 <= offset <= offset + length <= len(body):
        raise ValueError("a program lies outside the frame")
    return Program(kind, body[offset : offset + length], _get_ports(inputs), _get_ports(outputs))


def _get_ports(entries: HeaderValue) -> tuple[Port, ...]:
    return tuple(
        [Port(name, dtype, None if shape is None else tuple(shape), exact) for name, dtype, shape, exact in entries]
    )


# Replies ------------------------------------------------------------------------------------------------------------

_KINDS = get_args(Outcome)
_HEAD = struct.Struct("<QIBBidddQ")
"""The beginning of every reply's body: sequence, run, leaving, kind of outcome, number of the earlier
values that these are the same as, compile, run and CPU seconds, memory. The JSON header is empty when that is all.
"""
_NEW = -1

Results = tuple[tuple[Tensor | None, ...], ...]


class Reply(NamedTuple):
    """The outcome of run number `run` of batch `sequence`; `leaving` says that the worker ends itself after it."""

    sequence: int
    run: int
    outcome: Outcome
    leaving: bool


@strict
def answered_by(frame: Frame) -> tuple[int, int]:
    """Return the batch and the run that the reply in `frame` belongs to. Raises ExecutionError if it is malformed."""
    sequence, index, *_ = _HEAD.unpack_from(frame.body)
    return sequence, index


class ReplyEncoder:
    """Encodes the outcomes of one batch, in order.

    Values that are bit-equal to those of an earlier run are sent as a reference to them, because builds mostly agree;
    so is a single result that is bit-equal to an earlier one for the same feed and output.
    """

    def __init__(self, sequence: int) -> None:
        self._sequence = sequence
        self._runs: list[list[list[Bits | None]]] = []
        self._sent: dict[tuple[int, int], list[tuple[Bits, int]]] = {}
        self._count = 0

    def encode(self, index: int, outcome: Outcome, leaving: bool = False) -> bytes:
        """Return the reply frame of run `index`. Raises ExecutionError for a tensor stored wrongly."""
        rows, same = [], _NEW
        if isinstance(outcome, Values):
            rows = [[None if tensor is None else _bits(tensor) for tensor in outputs] for outputs in outcome.results]
            same = self._runs.index(rows) if rows in self._runs else _NEW
        seen = outcome.observations
        times = seen.compile_seconds, seen.run_seconds, seen.cpu_seconds
        body = FrameBody()
        body.add(_HEAD.pack(self._sequence, index, leaving, _KINDS.index(type(outcome)), same, *times, seen.memory))
        more = [astuple(seen.measured)] if seen.measured else []
        if same != _NEW:
            told = bool(seen.passes or seen.stderr or more)
            return body.frame([seen.passes, seen.stderr, None, *more] if told else None)
        content = self._put_results(rows, body) if isinstance(outcome, Values) else _put_failure(outcome)
        return body.frame([seen.passes, seen.stderr, content, *more])

    def _put_results(self, rows: list[list[Bits | None]], body: FrameBody) -> HeaderValue:
        self._runs.append(rows)
        return [
            [None if bits is None else self._put(bits, (row, column), body) for column, bits in enumerate(outputs)]
            for row, outputs in enumerate(rows)
        ]

    def _put(self, bits: Bits, place: tuple[int, int], body: FrameBody) -> HeaderValue:
        sent = self._sent.setdefault(place, [])
        for earlier, number in sent:
            if bits == earlier:
                return number
        sent.append((bits, self._count))
        self._count += 1
        return _put_tensor(bits, body)


class ReplyDecoder:
    """Decodes the replies of one batch; a reference becomes the very Tensor object it refers to."""

    def __init__(self) -> None:
        self._runs: list[Results] = []
        self._tensors: list[Tensor] = []

    @strict
    def decode(self, frame: Frame) -> Reply:
        """Return the reply that `frame` holds. Raises ExecutionError if it is malformed."""
        header, body = frame
        sequence, index, leaving, kind, same, compiling, running, cpu, memory = _HEAD.unpack_from(body)
        passes, stderr, content, *more = ((), "", None) if header is None else header
        measured = Measured(*more[0]) if more else None
        seen = Observations(compiling, running, memory, tuple(passes), _string(stderr), cpu, measured)
        if _KINDS[kind] is not Values:
            outcome: Outcome = _get_failure(_KINDS[kind].__name__, content, seen)
        else:
            outcome = Values(self._runs[same] if same >= 0 else self._get_results(content, body), seen)
        return Reply(sequence, index, outcome, bool(leaving))

    def _get_results(self, content: HeaderValue, body: bytes) -> Results:
        results = tuple([tuple([self._get(entry, body) for entry in row]) for row in content])
        self._runs.append(results)
        return results

    def _get(self, entry: HeaderValue, body: bytes) -> Tensor | None:
        if entry is None:
            return None
        if isinstance(entry, int):
            if entry < 0:
                raise ValueError("a reference to nothing")
            return self._tensors[entry]
        tensor = _get_tensor(entry, body)
        self._tensors.append(tensor)
        return tensor


def _put_failure(outcome: Rejected | Unsupported | OutOfMemory | Raised | Defect | Crashed | TimedOut) -> HeaderValue:
    match outcome:
        case Unsupported(stage, message, _, kind):
            return stage, message, kind
        case Rejected(stage, message) | OutOfMemory(stage, message):
            return stage, message
        case Raised(stage, kind, message, frames) | Defect(stage, kind, message, frames):
            return stage, kind, message, frames
        case Crashed(stage, number) | TimedOut(stage, number):
            return stage, number


def _get_failure(kind: str, content: HeaderValue, seen: Observations) -> Outcome:
    stage, *rest = content
    if stage not in STAGES:
        raise ValueError(f"no stage {stage}")
    match kind, rest:
        case "Rejected", [str(message)]:
            return Rejected(stage, message, seen)
        case "Unsupported", [str(message), str(error)]:
            return Unsupported(stage, message, seen, error)
        case "OutOfMemory", [str(message)]:
            return OutOfMemory(stage, message, seen)
        case "Raised", [str(error), str(message), frames]:
            return Raised(stage, error, message, tuple(map(_string, frames)), seen)
        case "Defect", [str(error), str(message), frames]:
            return Defect(stage, error, message, tuple(map(_string, frames)), seen)
        case "Crashed", [int(number)]:
            return Crashed(stage, number, seen)
        case "TimedOut", [int(seconds) | float(seconds)]:
            return TimedOut(stage, float(seconds), seen)
    raise ValueError(f"no outcome {kind} with {len(rest)} parts")


def _string(value: HeaderValue) -> str:
    if not isinstance(value, str):
        raise TypeError("text expected")
    return value
