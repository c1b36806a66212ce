"""Events: the values that tell listeners about the course of a campaign, and lines about that of other long work."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from miscompile.core.arms import ArmYield
from miscompile.core.finding import Finding

UNDECIDED = "undecided: "
"""Begin of the counters of tests without a verdict; the reason follows."""

MODEL_TESTS, MODEL_JUDGED = "tests of the model", "judged tests of the model"
"""Counters of a campaign around a model: tests of the model as a whole, and those of them that had a verdict."""

MODEL_UNDECIDED = "undecided test of the model: "
"""Begin of the counters of those without a verdict; the reason follows."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Counters since the start of this session, summed over the lanes.

    `arms` are the yields of a scheduled campaign's arms by name, over all its sessions. `disk` is the size of the
    folder in bytes.
    """

    seconds: float
    counters: Mapping[str, int]
    arms: Mapping[str, ArmYield] = field(default_factory=dict)
    disk: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    """A confirmed, reduced finding was stored and may be announced; `fresh` when its signature is new."""

    finding: Finding
    fresh: bool


@dataclass(frozen=True, slots=True)
class Notice:
    """A line for people, such as the restart of a lane; a `detail` only for those who ask for more."""

    text: str
    detail: bool = False


@dataclass(frozen=True, slots=True)
class Started:
    """A campaign is stored, and its tests begin: from now on its folder may be named."""


@dataclass(frozen=True, slots=True)
class Suspected:
    """A new finding was stored that nobody has confirmed or reduced yet. `nodes` is 0 where the size is unknown."""

    identifier: str
    signature: str
    nodes: int = 0


@dataclass(frozen=True, slots=True)
class WorkPhase:
    """How far another phase than the tests is: `done` of `total` steps, 0 where nobody knows how many there are.

    `what` is the same as long as the phase goes on, and `detail` says what it does at the moment. `left` are the
    seconds after which it ends at the latest, None where nothing limits it.
    """

    what: str
    done: int = 0
    total: int = 0
    left: float | None = None
    detail: str = ""


WorkPhaseListener = Callable[[WorkPhase], None]
"""Receives how far long work is."""


def unheard(phase: WorkPhase) -> None:
    """Discard how far long work is."""
    del phase


ProgressListener = Callable[[str], None]
"""Receives lines about the progress of long work; the command line prints them to stderr."""

Event: TypeAlias = Progress | Found | Notice | Started | Suspected | WorkPhase
