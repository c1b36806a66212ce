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
    """A line for people, such as the restart of a lane."""

    text: str


ProgressListener = Callable[[str], None]
"""Receives lines about the progress of long work; the command line prints them to stderr."""

Event: TypeAlias = Progress | Found | Notice
