"""The toy and its mutants as runners in this process, which share what does not depend on the mutant."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

from miscompile.core.case import Case
from miscompile.core.outcome import Observations, Outcome, Raised, Rejected, Stage, TimedOut, Unsupported, Values
from miscompile.core.run import Run
from miscompile.targets.known import known
from miscompile.targets.toy.adapter import ToySession
from miscompile.targets.toy.ir import Code
from miscompile.targets.toy.mutants import SOUND, Optimiser
from miscompile.targets.toy.passes.cleanup import same_code
from miscompile.targets.toy.reader import read

LIMIT_SECONDS = 1.0
"""CPU seconds after which a run of a mutant is a hang."""


class _TooLongError(BaseException):
    """A run takes too long. No pass can catch it."""


def _expire(number: int, frame: FrameType | None) -> None:
    del number, frame
    raise _TooLongError


@contextmanager
def limited() -> Iterator[None]:
    """Let `_TooLongError` end the block after `LIMIT_SECONDS` of CPU time."""
    before = signal.signal(signal.SIGVTALRM, _expire)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


class SharedRuns:
    """What the runs of one test have in common: programs as they were read, and what the sound toy makes of them."""

    def __init__(self) -> None:
        self._read: dict[bytes, Code | Exception] = {}
        self.outcomes: dict[tuple[object, ...], tuple[Outcome, Code | None]] = {}

    def code(self, case: Case) -> Code:
        """Return a program as it was read, to be copied before it is changed. Raises what the reader raises."""
        payload = case.program.payload
        if payload not in self._read:
            try:
                self._read[payload] = read(payload)
            except Exception as error:  # noqa: BLE001 - it is raised again for every run
                self._read[payload] = error
        found = self._read[payload]
        if isinstance(found, Exception):
            raise found
        return found

    @property
    def operators(self) -> set[str]:
        """The operators of all programs, before and after optimisation."""
        codes = [code for code in self._read.values() if isinstance(code, Code)]
        codes += [code for _, code in self.outcomes.values() if code is not None]
        return {call.op for code in codes for call in code.calls}


def _key(run: Run) -> tuple[object, ...]:
    build = run.build
    feeds = tuple(tensor.array.tobytes() for feed in run.case.feeds for tensor in feed)
    return run.case.program.payload, build.level, build.disabled, feeds


class SharedRunner:
    """Runs one optimiser. Where a mutant optimises a program to the calls that the sound toy makes of it, the outcome
    is the sound one's, which is the same object; a mutant of a kernel (`kernels`) is always run."""

    def __init__(self, shared: SharedRuns, optimiser: Optimiser = SOUND, *, kernels: bool = False) -> None:
        self._shared = shared
        self._optimiser = optimiser
        self._kernels = kernels

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        """Return one outcome for each run."""
        return [self._one(run) for run in runs]

    def _one(self, run: Run) -> Outcome:
        key, sound = _key(run), self._optimiser is SOUND
        if key not in self._shared.outcomes:
            self._shared.outcomes[key] = self._executed(run, SOUND, None)
        outcome, code = self._shared.outcomes[key]
        if sound or run.build.level == "off":
            return outcome
        return self._executed(run, self._optimiser, None if self._kernels else (outcome, code))[0]

    def _executed(
        self, run: Run, optimiser: Optimiser, sound: tuple[Outcome, Code | None] | None
    ) -> tuple[Outcome, Code | None]:
        stage: Stage = "compile"
        code: Code | None = None
        try:
            with limited():
                code = self._shared.code(run.case).copy()
                optimiser.optimise(code, run.build.level, run.build.disabled, frozenset())
                if sound is not None and sound[1] is not None and _alike(code, sound[1]):
                    return sound
                stage = "run"
                session = ToySession(code, optimiser)
                results = tuple(session.run(feed) for feed in run.case.feeds)
        except _TooLongError:
            return TimedOut(stage, LIMIT_SECONDS), code
        except Exception as error:  # noqa: BLE001 - mutants raise whatever they like
            kind, message = type(error).__name__, str(error)
            rejection = known("toy").rejection(kind, message)
            if rejection is None:
                return Raised(stage, kind, message), code
            return (Unsupported if rejection.status == "unsupported" else Rejected)(stage, message), code
        return Values(results, Observations()), code


def _alike(one: Code, other: Code) -> bool:
    """Tell whether two programs compute the same because they consist of the same calls; a broken one does not."""
    try:
        return one.inputs == other.inputs and same_code(one, other)
    except KeyError:
        return False
