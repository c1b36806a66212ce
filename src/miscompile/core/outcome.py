"""Outcomes: the results of runs. A closed union; match on it with `assert_never` at the end."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from miscompile.core.tensor import Tensor

Stage = Literal["load", "compile", "run", "collect"]


@dataclass(frozen=True, slots=True)
class Measured:
    """What the stages of a run cost, where the build asked for it (`Build.measure`).

    `compile_cpu` and `run_cpu` are CPU seconds of all threads and ended children: of the build, and of one further run
    on all feeds, as the mean of `repeats`. `compile_bytes` and `run_bytes` are by how much each stage made the resident
    memory grow at its peak (0: not known).
    """

    compile_cpu: float
    run_cpu: float = 0.0
    repeats: int = 0
    compile_bytes: int = 0
    run_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Observations:
    """Measurements of a run besides its result.

    Seconds are wall-clock seconds inside the compiler; `memory` is the worker's peak resident size in bytes
    (0: not measured); `passes` are the names of the passes seen to change the program, if the build asked.
    `cpu_seconds` is the CPU time of all the worker's threads while inside the compiler, up to its death if it died
    (0.0: unknown). `measured` is what the stages cost, if the build asked.
    """

    compile_seconds: float = 0.0
    run_seconds: float = 0.0
    memory: int = 0
    passes: tuple[str, ...] = ()
    stderr: str = ""
    cpu_seconds: float = 0.0
    measured: Measured | None = None


NOTHING_SEEN = Observations()


@dataclass(frozen=True, slots=True)
class Values:
    """The program ran: for each feed, its outputs in the order of `Program.outputs`; None is a missing output."""

    results: tuple[tuple[Tensor | None, ...], ...]
    observations: Observations = NOTHING_SEEN


@dataclass(frozen=True, slots=True)
class Rejected:
    """The target refused the program with a message that `known.toml` lists as a legitimate refusal."""

    stage: Stage
    message: str
    observations: Observations = NOTHING_SEEN


@dataclass(frozen=True, slots=True)
class Unsupported:
    """The target refused the program because it lacks an operator, a type or a feature.

    `kind` is the error's class name, by which `known.toml` may tell it.
    """

    stage: Stage
    message: str
    observations: Observations = NOTHING_SEEN
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Raised:
    """The target raised an error. `kind` is the error's class name, `frames` its innermost frames."""

    stage: Stage
    kind: str
    message: str
    frames: tuple[str, ...] = ()
    observations: Observations = NOTHING_SEEN


@dataclass(frozen=True, slots=True)
class Defect:
    """The target's adapter failed, which says nothing about the compiler. Fields are those of `Raised`.

    No oracle makes a finding of it; it is counted as a defect of this tool.
    """

    stage: Stage
    kind: str
    message: str
    frames: tuple[str, ...] = ()
    observations: Observations = NOTHING_SEEN


@dataclass(frozen=True, slots=True)
class Crashed:
    """The worker died: of signal number `signal`, or with exit status `-signal` when it is negative."""

    stage: Stage
    signal: int
    observations: Observations = NOTHING_SEEN


@dataclass(frozen=True, slots=True)
class TimedOut:
    """The run was killed after `seconds`."""

    stage: Stage
    seconds: float
    observations: Observations = NOTHING_SEEN


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """The run asked for more memory than its limit allows."""

    stage: Stage
    message: str = ""
    observations: Observations = field(default=NOTHING_SEEN)


DEFECTS = "adapter defects"
"""The counter of runs that ended with a `Defect`; the lanes' log has their messages."""

Outcome: TypeAlias = Values | Rejected | Unsupported | Raised | Defect | Crashed | TimedOut | OutOfMemory


def is_death(outcome: Outcome) -> bool:
    """Tell whether the worker died of the run or was killed for it."""
    return isinstance(outcome, Crashed | TimedOut)


def status_of(outcome: Outcome) -> str:
    """Return the outcome's kind as one lower-case word, for tables and logs."""
    return type(outcome).__name__.lower()
