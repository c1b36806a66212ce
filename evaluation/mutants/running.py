"""The toy and its mutants as runners in this process, which share what does not depend on the mutant."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from evaluation.mutants.infection import Infection
from evaluation.mutants.stepwise import ELSEWHERE, Trace, mutated, trace_of
from miscompile.core.case import Case
from miscompile.core.outcome import (
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
from miscompile.core.run import Run
from miscompile.execution.worker import checked
from miscompile.graph.careful import careful, must_survive
from miscompile.producers.disruptive.producer import ORACLE as DISRUPTIVE
from miscompile.targets.known import known
from miscompile.targets.toy.adapter import ToySession
from miscompile.targets.toy.ir import Code
from miscompile.targets.toy.kernels.table import REFERENCE_OPERATORS
from miscompile.targets.toy.mutants import REFERENCE, Optimiser
from miscompile.targets.toy.passes.cleanup import same_code
from miscompile.targets.toy.reader import read

TILED = frozenset({"TiledMatMul", "BlockTranspose", "TableLookup", "ElementwiseLoop"})
"""Operators whose kernels have mutants."""

LIMIT_SECONDS = 1.0
"""CPU seconds after which a run of a mutant is a hang."""

SOUND_SECONDS = 10.0
"""The same for the sound optimiser, which on a busy machine needs more than a second for a large program."""


class _TooLongError(BaseException):
    """A run takes too long. No pass can catch it."""


def _expire(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise _TooLongError


@contextmanager
def limited(seconds: float = LIMIT_SECONDS) -> Iterator[None]:
    """Let `_TooLongError` end the block after so many seconds of CPU time."""
    before = signal.signal(signal.SIGVTALRM, _expire)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


class SharedRuns:
    """What the runs of one test have in common: programs as they were read, and what the sound toy makes of them.

    `outcomes` hold the optimised program beside the outcome, None when the sound toy has refused it.
    """

    def __init__(self) -> None:
        self._read: dict[bytes, Code | Exception] = {}
        self.outcomes: dict[tuple[object, ...], tuple[Outcome, Code | None]] = {}
        self.traces: dict[tuple[object, ...], Trace] = {}

    def code(self, case: Case) -> Code:
        """Return a program as it was read, to be copied before it is changed. Raises what the reader raises."""
        payload = case.program.payload
        if payload not in self._read:
            try:
                if case.recipe.get("oracle") == DISRUPTIVE:
                    with careful():  # onnx's inference, which the reader calls, may abort on an invalid program
                        must_survive(lambda: read(payload, REFERENCE_OPERATORS))
                self._read[payload] = read(payload, REFERENCE_OPERATORS)
            except Exception as error:  # noqa: BLE001 - it is raised again for every run
                self._read[payload] = error
        found = self._read[payload]
        if isinstance(found, Exception):
            raise found
        return found

    @property
    def infected(self) -> set[str]:
        """The mutants that some program infects."""
        return {name for trace in self.traces.values() for name in trace.infected}


def _key(run: Run) -> tuple[object, ...]:
    build = run.build
    feeds = tuple(tuple((one.array.shape, one.array.tobytes()) for one in feed) for feed in run.case.feeds)
    return run.case.program.payload, build.level, build.disabled, feeds


class SharedRunner:
    """Runs one optimiser. Where a mutant optimises a program to the calls that the sound toy makes of it, the outcome
    is the sound one's, which is the same object; a mutant of a kernel (`kernels`) is always run. `differed` tells
    whether some run was of another program, and `visible` whether an outcome was another one to the last bit."""

    def __init__(
        self, shared: SharedRuns, optimiser: Optimiser = REFERENCE, *, name: str = "", kernels: bool = False
    ) -> None:
        self._shared = shared
        self._optimiser = optimiser
        self._name = name
        self._kernels = kernels
        self.differed = False
        self.visible = False

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        """Return one outcome for each run."""
        return [self._one(run) for run in runs]

    def _one(self, run: Run) -> Outcome:
        key, sound = _key(run), self._optimiser is REFERENCE
        if key not in self._shared.outcomes:
            self._shared.outcomes[key] = self._executed(run, REFERENCE, None)
        outcome, code = self._shared.outcomes[key]
        if sound or run.build.level == "off":
            return outcome
        found = self._mutated(run, key, outcome, code)
        same = found is outcome or _same(found, outcome)
        self.visible = self.visible or not same
        self.differed = self.differed or (found is not outcome and not (same and self._kernels))
        return found

    def _mutated(self, run: Run, key: tuple[object, ...], outcome: Outcome, code: Code | None) -> Outcome:
        trace = self._shared.traces.get(key)
        if trace is not None and code is not None and ELSEWHERE not in trace.infected.get(self._name, ()):
            return self._stepwise(run, trace, outcome, code)
        return self._executed(run, self._optimiser, None if self._kernels else (outcome, code))[0]

    def _stepwise(self, run: Run, trace: Trace, outcome: Outcome, sound: Code) -> Outcome:
        """Repeat the steps that the mutant may change; run its program when it is another one."""
        stage: Stage = "compile"
        try:
            with limited():
                code = mutated(trace, self._name, self._optimiser, run.build.level, run.build.disabled)
                if code is None or _alike(code, sound):
                    return outcome
                stage = "run"
                return self._values(code, run)
        except _TooLongError:
            return TimedOut(stage, LIMIT_SECONDS)
        except Exception as error:  # noqa: BLE001 - mutants raise whatever they like
            return _failure(stage, error)

    def _values(self, code: Code, run: Run) -> Values:
        session = ToySession(code, self._optimiser)
        return Values(tuple(checked(session.run(feed)) for feed in run.case.feeds), Observations())

    def _executed(
        self, run: Run, optimiser: Optimiser, sound: tuple[Outcome, Code | None] | None
    ) -> tuple[Outcome, Code | None]:
        stage: Stage = "compile"
        seconds = SOUND_SECONDS if optimiser is REFERENCE else LIMIT_SECONDS
        try:
            with limited(seconds):
                code = self._shared.code(run.case).copy()
                optimiser.optimise(code, run.build.level, run.build.disabled, frozenset())
                if sound is not None and sound[1] is not None and _alike(code, sound[1]):
                    return sound
                stage = "run"
                session = ToySession(code, optimiser)
                results = tuple(checked(session.run(feed)) for feed in run.case.feeds)
        except _TooLongError:
            return TimedOut(stage, seconds), None
        except Exception as error:  # noqa: BLE001 - mutants raise whatever they like
            return _failure(stage, error), None
        return Values(results, Observations()), code


class TracingRunner:
    """Records the steps of each optimised program and the mutants that they infect; its outcomes are the sound ones."""

    def __init__(self, shared: SharedRuns, infection: Infection) -> None:
        self._shared = shared
        self._infection = infection

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        """Return the outcome of the sound toy for each run, which must be known."""
        for run in runs:
            key = _key(run)
            _, optimised = self._shared.outcomes[key]
            if run.build.level != "off" and optimised is not None and key not in self._shared.traces:
                code = self._shared.code(run.case).copy()
                trace = trace_of(code, run.build.level, run.build.disabled, self._infection)
                for feed in run.case.feeds if TILED & {call.op for call in code.calls} else ():
                    ToySession(code, self._infection.optimiser).run(feed)
                self._infection.meet(
                    {call.op for one in (code, optimised, self._shared.code(run.case)) for call in one.calls}
                )
                trace.note(self._infection, ELSEWHERE)
                self._shared.traces[key] = trace
        return [self._shared.outcomes[_key(run)][0] for run in runs]


def _same(one: Outcome, other: Outcome) -> bool:
    """Tell whether two outcomes are values with the same bits, or the same failure."""
    if not isinstance(one, Values) or not isinstance(other, Values):
        return one == other
    return all(
        a is b or (a is not None and b is not None and a.same(b))
        for first, second in zip(one.results, other.results, strict=True)
        for a, b in zip(first, second, strict=True)
    )


def _failure(stage: Stage, error: Exception) -> Outcome:
    kind, message = type(error).__name__, str(error)
    if isinstance(error, MemoryError):
        return OutOfMemory(stage, message)
    rejection = known("toy").rejection(kind, message)
    if rejection is None:
        return Raised(stage, kind, message)
    return (Unsupported if rejection.status == "unsupported" else Rejected)(stage, message)


def _alike(one: Code, other: Code) -> bool:
    """Tell whether two programs compute the same because they consist of the same calls; a broken one does not."""
    try:
        return one.inputs == other.inputs and same_code(one, other)
    except KeyError:
        return False
