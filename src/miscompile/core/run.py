"""Runs: a case on a target under a build, for a purpose."""

from dataclasses import dataclass
from typing import Literal

from miscompile.base.specs import Spec
from miscompile.core.case import Case

Purpose = Literal["fuzz", "probe", "judge", "confirm", "reduce", "bisect", "replay", "check"]


@dataclass(frozen=True, slots=True)
class Build:
    """How a target builds a program.

    `level` is one of the target's build levels: every target knows `off` (no optional optimisation) and `full`.
    `disabled` names passes to switch off. `observe` asks for the passes that fired, which costs time. `transform` is
    the spec of a transform, such as `functions{seed=3}`, whose result the target gets instead of the program; None for
    the program unchanged. `sequence` names passes that the target runs in this order before the level's own pipeline,
    if it supports that. `measure` numbers a measurement of cost: 0 for none, 1 for a quick one, from 2 on for one
    that runs the program long enough to be judged. Numbers differ, so that no cache takes one measurement for another.
    """

    level: str = "full"
    disabled: frozenset[str] = frozenset()
    threads: int = 1
    device: str = "cpu"
    observe: bool = False
    transform: Spec | None = None
    sequence: tuple[str, ...] = ()
    measure: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """A unit of work: build the case's program as `build` says, then run it on every feed."""

    case: Case
    target: str
    build: Build
    purpose: Purpose = "fuzz"
