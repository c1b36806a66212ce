"""The worker: a process that builds and runs programs, and may crash while doing so.

It reads batches from a stream socket, executes run after run, and sends the outcomes together, because every message
wakes the parent. It writes every step to the flight recorder beforehand, and holds unsent outcomes there.
"""

import ctypes
import dis
import faulthandler
import io
import os
import re
import resource
import socket
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from miscompile import targets
from miscompile.base.child import die_with_parent, lift_memory_limit, limit_memory
from miscompile.base.errors import ExecutionError, SpecError
from miscompile.base.metering import cpu_seconds, forget_peak, resident_bytes
from miscompile.core.case import Feed
from miscompile.core.outcome import (
    Defect,
    Measured,
    Observations,
    Outcome,
    OutOfMemory,
    Raised,
    Rejected,
    Stage,
    Unsupported,
    Values,
)
from miscompile.core.run import Run
from miscompile.core.tensor import Tensor
from miscompile.execution import flight_recorder
from miscompile.execution.flight_recorder import Printed, Recorder
from miscompile.execution.frames import Frame, FrameBuffer
from miscompile.execution.limits import Limits
from miscompile.execution.wire import OURS, ReplyEncoder, decode_batch
from miscompile.targets.about import Adapter, Session
from miscompile.targets.known import Known

FRAMES = 8
MESSAGE = 4_000
MOST_RESULTS = 1 << 29
"""Bytes of the results of one feed. A comparison needs several copies of them in double precision."""
OUT_OF_MEMORY = re.compile(
    r"bad_alloc|bad_array_new_length|out of memory|RESOURCE_EXHAUSTED"
    r"|(?:failed|unable|cannot) to allocate|cannot allocate memory|allocation failed|std::length_error.*alloc",
    re.IGNORECASE,
)
"""Messages of compilers about a failed allocation."""

_HOLD_SECONDS = 0.05
"""Seconds for which outcomes are held back; the outcomes of a slow compiler are sent one by one."""

_LINE_BUFFERED = 1

QUICK_SECONDS, LONG_SECONDS = 0.002, 0.25
"""CPU seconds for which a program is run again in a quick measurement, and in one that is judged."""

_READ_AFTER = tuple(1 << power for power in range(15))
"""Numbers of repeats after which the measurement is read, because reading takes time as well."""

ADAPTER_ERRORS = (
    AssertionError, AttributeError, LookupError, NameError, NotImplementedError, ZeroDivisionError,
)  # fmt: skip
"""Errors that are the adapter's own when its code raises them. It passes on a compiler's errors as other classes."""

_TARGETS = str(Path(targets.__file__).parent) + os.sep


@dataclass(slots=True)
class Workplace:
    """The resources of a worker. `adapter` was constructed before the fork; `external` says that its compiler is no
    part of this package."""

    adapter: Adapter
    known: Known
    recorder: Recorder
    printed: Printed
    external: bool = True


@dataclass(slots=True)
class Attempt:
    """A run in progress. `session` keeps the compiled program alive until its results have been copied."""

    stage: Stage = "load"
    session: Session | None = None
    compile_seconds: float = 0.0
    run_seconds: float = 0.0
    cpu_seconds: float = 0.0
    passes: tuple[str, ...] = ()
    measured: Measured | None = None


class _Discard(io.RawIOBase):
    """Descriptor 2 as a Python stream on which printing never fails, not even when the limit is reached."""

    def writable(self) -> bool:
        """Return True."""
        return True

    def fileno(self) -> int:
        """Return the descriptor, for code that redirects it."""
        return 2

    def write(self, data: "bytes | bytearray | memoryview") -> int:  # type: ignore[override]
        """Write as much of `data` as fits; return the size of all of it."""
        size = len(data)
        try:
            os.write(2, data)
        except OSError:
            return size
        return size


def main(place: Workplace, channel: socket.socket, limits: Limits, parent: int) -> None:
    """Prepare this freshly forked process (child of `parent`) and serve `channel` until it closes."""
    die_with_parent(parent)
    os.setpgid(0, 0)  # so that processes of the compiler can be killed with the worker
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(place.printed.fd, 1)
    os.dup2(place.printed.fd, 2)
    sys.stdout = sys.stderr = io.TextIOWrapper(_Discard(), "utf-8", "backslashreplace", write_through=True)
    libc = ctypes.CDLL(None)
    libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, _LINE_BUFFERED, 0)
    faulthandler.enable(2, all_threads=False)
    limit_memory(limits.memory or None)
    serve(place, channel)


def serve(place: Workplace, channel: socket.socket) -> None:
    """Answer batches until the channel closes, or until a run exhausts the memory, which may corrupt the heap."""
    buffer = FrameBuffer()
    while (frame := _receive(channel, buffer)) is not None and _serve_batch(place, channel, frame):
        place.recorder.step(flight_recorder.IDLE)


def _receive(channel: socket.socket, buffer: FrameBuffer) -> Frame | None:
    while (frame := buffer.take()) is None:
        if not buffer.receive(channel):
            return None
    return frame


def _serve_batch(place: Workplace, channel: socket.socket, frame: Frame) -> bool:
    """Answer the batch in `frame`; return whether the worker can go on."""
    recorder = place.recorder
    recorder.begin(int(frame.header["s"]), 0)
    sequence, runs = decode_batch(frame)
    encoder = ReplyEncoder(sequence)
    unsent: list[bytes] = []
    due = time.monotonic() + _HOLD_SECONDS
    for index, run in enumerate(runs):
        recorder.begin(sequence, index)
        reply, leaving = answer(place, encoder, index, run)
        unsent.append(reply)
        may_wait = index + 1 < len(runs) and not leaving and time.monotonic() < due
        if may_wait and recorder.hold(reply):
            continue
        recorder.step(flight_recorder.REPLY)
        channel.sendall(b"".join(unsent))
        recorder.release()
        if leaving:
            return False
        unsent.clear()
        due = time.monotonic() + _HOLD_SECONDS
    return True


def answer(place: Workplace, encoder: ReplyEncoder, index: int, run: Run) -> tuple[bytes, bool]:
    """Execute `run`; return the reply frame, and whether the worker should end."""
    attempt = Attempt()
    outcome = execute(place, run, attempt)
    # An error on a device may leave its context broken for all that follows in this process.
    leaving = isinstance(outcome, OutOfMemory) or (run.build.device != "cpu" and isinstance(outcome, Raised))
    if isinstance(outcome, OutOfMemory):
        lift_memory_limit()
    try:
        reply = encoder.encode(index, outcome, leaving)
    except ExecutionError as error:  # the adapter broke its contract
        reply = encoder.encode(index, Raised("collect", "AdapterError", str(error), (), outcome.observations))
    attempt.session = None  # may run destructors, which must count for this run
    return reply, leaving


def execute(place: Workplace, run: Run, attempt: Attempt) -> Outcome:
    """Build and run; return the outcome. Only a death prevents an outcome."""
    place.printed.reset()
    try:
        results = _attempt(place, run, attempt)
    except BaseException as error:  # noqa: BLE001 - compilers raise any exception, even SystemExit
        outcome = outcome_of(error, attempt.stage, place.known, external=place.external)
        if run.build.observe and run.case.program.kind != "onnx":
            attempt.passes = _converted(place)
        return replace(outcome, observations=_observed(place, attempt))
    return Values(results, _observed(place, attempt))


def _converted(place: Workplace) -> tuple[str, ...]:
    """Return the conversion functions that a front end ran before it failed: one of them is to blame."""
    try:
        return tuple(place.adapter.fired(""))
    except Exception:  # noqa: BLE001 - an adapter that has just failed may fail here too
        return ()


def _observed(place: Workplace, attempt: Attempt) -> Observations:
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    printed = place.printed.tail()
    times = attempt.compile_seconds, attempt.run_seconds
    return Observations(*times, memory, attempt.passes, printed, attempt.cpu_seconds, attempt.measured)


def _attempt(place: Workplace, run: Run, attempt: Attempt) -> tuple[tuple[Tensor | None, ...], ...]:
    feeds = _copies(run.case.feeds)
    attempt.stage = "compile"
    cpu = time.process_time()  # read once for all stages: this clock is a system call
    place.recorder.compiling(cpu)
    try:
        results, log = _compute(place, run, feeds, attempt)
    finally:
        attempt.cpu_seconds = time.process_time() - cpu
    if run.build.observe:
        attempt.passes = tuple(place.adapter.fired(log))
    return tuple([checked(outputs) for outputs in results])


def _compute(
    place: Workplace, run: Run, feeds: list[Feed], attempt: Attempt
) -> tuple[list[tuple[Tensor | None, ...]], str]:
    """Execute the three stages inside the compiler; return the results, and the compilation log if it is observed."""
    gauge = Gauge() if run.build.measure else None
    begin = time.perf_counter()
    try:
        session = attempt.session = place.adapter.build(run.case.program, run.build)
    finally:
        attempt.compile_seconds = time.perf_counter() - begin
        if gauge is not None:
            spent, grown = gauge.read()
            attempt.measured = Measured(spent, compile_bytes=grown)
    log = place.printed.text() if run.build.observe else ""
    attempt.stage = "run"
    place.recorder.step(flight_recorder.RUN)
    begin = time.perf_counter()
    try:
        results = [session.run(feed) for feed in feeds]
    finally:
        attempt.run_seconds = time.perf_counter() - begin
    if attempt.measured is not None:
        attempt.measured = _repeated(attempt.measured, session, feeds, run.build.measure)
    attempt.stage = "collect"
    place.recorder.step(flight_recorder.COLLECT)
    attempt.session = None
    del session  # runs destructors, which must count for this run and for the compiler's time
    return results, log


class Gauge:
    """Measures the CPU seconds and the growth of the resident memory from its construction on."""

    def __init__(self) -> None:
        self._memory = resident_bytes() if forget_peak() else 0
        self._cpu = cpu_seconds()

    def read(self) -> tuple[float, int]:
        """Return the CPU seconds, and by how many bytes the memory grew at its peak (0: not known)."""
        spent = cpu_seconds() - self._cpu
        return spent, max(0, resident_bytes(peak=True) - self._memory) if self._memory else 0


def _repeated(measured: Measured, session: Session, feeds: list[Feed], measure: int) -> Measured:
    """Run the program again until that has taken long enough to be measured; the first run may have prepared it."""
    enough = QUICK_SECONDS if measure == 1 else LONG_SECONDS
    gauge, repeats = Gauge(), 0
    while True:
        for feed in feeds:
            session.run(feed)
        repeats += 1
        spent, grown = gauge.read() if repeats in _READ_AFTER else (0.0, 0)
        if repeats in _READ_AFTER and (spent >= enough or repeats == _READ_AFTER[-1]):
            return replace(measured, run_cpu=spent / repeats, repeats=repeats, run_bytes=grown)


def _copies(feeds: Sequence[Feed]) -> list[Feed]:
    """Copy the feeds: the runs of a batch share them, and a faulty compiled program may overwrite its inputs.

    A feed that occurs twice in the run is copied once, so that overwritten inputs change the second result.
    """
    made: dict[tuple[int, ...], Feed] = {}
    for feed in feeds:
        key = tuple(map(id, feed))
        if key not in made:
            made[key] = tuple([Tensor(tensor.dtype, tensor.array.copy()) for tensor in feed])
    return [made[tuple(map(id, feed))] for feed in feeds]


def checked(outputs: "tuple[Tensor | None, ...]") -> tuple[Tensor | None, ...]:
    """Return the results of one feed.

    Raises TypeError for one that is no Tensor, and MemoryError where they are larger than `MOST_RESULTS`.
    """
    size = 0
    for output in outputs:
        if isinstance(output, Tensor):
            size += output.array.nbytes
        elif output is not None:
            raise TypeError(f"the adapter returned a {type(output).__name__} where a Tensor belongs")
    if size > MOST_RESULTS:
        raise MemoryError(f"results of {size} bytes; at most {MOST_RESULTS} are compared")
    return tuple(outputs)


def outcome_of(error: BaseException, stage: Stage, known: Known, *, external: bool = True) -> Outcome:
    """Classify an exception: expected by `known.toml`, a failed allocation, a defect of the adapter, or the compiler's.

    Only the adapter of an `external` compiler, which is no part of this package, can be told from its compiler.

    A SpecError is the tool's own: the run's options are invalid, and the compiler is not concerned. The pool raises an
    error instead of returning such an outcome. `kind` is the class name; `frames` are the innermost frames as
    `file:line:qualified function`, the innermost first.
    """
    kind = OURS if isinstance(error, SpecError) else type(error).__name__
    message = _message(error)
    if kind == OURS:
        return Raised(stage, kind, message, _frames(error.__traceback__))
    if isinstance(error, MemoryError):
        return OutOfMemory(stage, message)
    rejection = known.rejection(kind, message)
    if rejection is not None:
        return Unsupported(stage, message, kind=kind) if rejection.status == "unsupported" else Rejected(stage, message)
    if OUT_OF_MEMORY.search(message):
        return OutOfMemory(stage, message)
    made = Defect if external and isinstance(error, ADAPTER_ERRORS) and _is_own(error.__traceback__) else Raised
    return made(stage, kind, message, _frames(error.__traceback__))


def _is_own(trace: TracebackType | None) -> bool:
    """Tell whether an error arose in the code of an adapter itself, and not in a function that it called.

    An extension module has no frame of its own, so the last frame of an error in C++ is the adapter's as well, at a
    call.
    """
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not trace.tb_frame.f_code.co_filename.startswith(_TARGETS):
        return False
    return "CALL" not in dis.opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]]


def _message(error: BaseException) -> str:
    try:
        return str(error)[:MESSAGE]
    except Exception as failure:  # noqa: BLE001 - an error class of a compiler may be broken itself
        return f"(no message: {type(failure).__name__})"


def _frames(innermost: TracebackType | None) -> tuple[str, ...]:
    found = [
        f"{code.co_filename.rpartition('site-packages/')[2]}:{line}:{getattr(code, 'co_qualname', code.co_name)}"
        for code, line in ((frame.f_code, line) for frame, line in traceback.walk_tb(innermost))
        if code.co_filename != __file__
    ]
    return tuple(reversed(found[-FRAMES:]))
