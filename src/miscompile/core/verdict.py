"""Verdicts: an oracle's judgements of outcomes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from miscompile.core.run import Run

FindingKind = Literal[
    "wrong",
    "missing",
    "shape",
    "dtype",
    "exception",
    "death",
    "hang",
    "memory",
    "accepted",
    "special",
    "cost",
    "refused-form",
]
"""Wrong values, missing outputs, another shape or dtype than the reference's, an error of one build only (or of a
valid program), a dead worker, a timeout, exhausted memory, an invalid program that gave values, wrong values because of
special operands such as NaN and infinities, time or memory out of proportion, a call that is refused although another
form of it is taken."""


@dataclass(frozen=True, slots=True)
class Holds:
    """The property holds.

    `note` is the reason why a difference was judged benign, if any; `details` are JSON values.
    """

    note: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why a property is violated.

    `message` is one line for people; `rule` the comparison that decided (`exact`, `monte-carlo`, `structure`,
    `fixed`, `status`, `declared`, `invalid`, `special`, `bits`, `memory`, `cost`, `forms`); `faulty` the run at fault;
    `reference` the run that it was compared with (None: no build is right); `output` the name of the first bad output,
    if there is one; `details` JSON values for the report.
    """

    kind: FindingKind
    rule: str
    message: str
    faulty: Run
    reference: Run | None = None
    output: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Violated:
    """The property does not hold."""

    evidence: Evidence


@dataclass(frozen=True, slots=True)
class Inconclusive:
    """There is no verdict: `reason` is a short stable phrase that is counted (`reference not finite`), `detail` a line
    for people."""

    reason: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Needs:
    """The oracle asks for a second round; its `judge` gets these runs' outcomes after the first ones."""

    runs: tuple[Run, ...]


Verdict: TypeAlias = Holds | Violated | Inconclusive | Needs
