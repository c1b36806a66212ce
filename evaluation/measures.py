"""Figures of all tables: statistics of repeated measurements, and failures with what makes two of them the same."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from miscompile.base.messages import normalise
from miscompile.core.outcome import Crashed, Outcome, Raised
from miscompile.core.verdict import Evidence
from miscompile.triage.signature import frames_of, symptom_of

Watch = Callable[[str, int, int], None]
"""Told what is being measured, and how many steps of how many are done."""


def unwatched(what: str, done: int, total: int) -> None:
    """Watch nothing."""
    del what, done, total


@dataclass(frozen=True, slots=True)
class SampleStatistics:
    """Mean and sample standard deviation of repeated measurements, with the least and the most of them."""

    mean: float
    deviation: float
    least: float
    most: float
    count: int

    def as_json(self) -> dict[str, Any]:
        """Return the statistics as a JSON object."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.mean:,.1f} ± {self.deviation:,.1f}" if self.count > 1 else f"{self.mean:,.1f}"


def sample_statistics(values: Iterable[float]) -> SampleStatistics:
    """Return the statistics of at least one value; the deviation of one alone is 0. Raises ValueError without any."""
    found = list(values)
    if not found:
        raise ValueError("nothing was measured")
    mean = math.fsum(found) / len(found)
    square = math.fsum((value - mean) ** 2 for value in found) / max(1, len(found) - 1)
    return SampleStatistics(mean, math.sqrt(square), min(found), max(found), len(found))


@dataclass(frozen=True, slots=True)
class ConfirmedFailure:
    """A failing test that failed again in a fresh worker.

    `test` is its number in the series, `message` the bug's text and `trace` its innermost frames, both without what
    varies from case to case; of wrong results there is neither, so that their kind is all the text. `signature` is what
    this tool holds the bug by.
    """

    test: int
    kind: str
    message: str
    trace: tuple[str, ...]
    signature: str

    def as_json(self) -> dict[str, Any]:
        """Return the failure as a JSON object."""
        return asdict(self)


def failure_of(test: int, evidence: Evidence, outcome: Outcome | None, signature: str) -> ConfirmedFailure:
    """Return the failure that a violation is; `outcome` is what came of its faulty run."""
    text = symptom_of(evidence, outcome).text
    return ConfirmedFailure(
        test, evidence.kind, f"{evidence.kind}: {text}" if text else evidence.kind, trace_of(outcome), signature
    )


def trace_of(outcome: Outcome | None) -> tuple[str, ...]:
    """Return the innermost frames that an outcome shows, empty when it shows none."""
    match outcome:
        case Raised():
            return tuple(normalise(frame) for frame in outcome.frames)
        case Crashed():
            return tuple(normalise(frame) for frame in frames_of(outcome.observations.stderr))
        case _:
            return ()


@dataclass(frozen=True, slots=True)
class DifferentFailures:
    """How many different failures there are: by text, by text and trace (HIRFUZZ, section 4.5), and by signature."""

    failures: int
    by_message: int
    by_trace: int
    by_signature: int

    def as_json(self) -> dict[str, int]:
        """Return the counts as a JSON object."""
        return asdict(self)


def unique(failures: Sequence[ConfirmedFailure]) -> DifferentFailures:
    """Count the different ones among `failures`."""
    return DifferentFailures(
        len(failures),
        len({failure.message for failure in failures}),
        len({(failure.message, failure.trace) for failure in failures}),
        len({failure.signature for failure in failures}),
    )
