"""Requests to the process with TVM, and what was measured of patterns in Relax programs."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from miscompile.targets.registry import parse_target

TARGET = "tvm"
OPTIMISING = frozenset(parse_target(TARGET).about.passes)
"""Passes that can be off, and whose work is seen in a build: all that optimise, but none that must lower."""


class RelaxSeed(NamedTuple):
    """A model that TVM's importer takes, and its inputs without elements, whose sizes must be told."""

    payload: bytes
    empty: tuple[tuple[str, tuple[int, ...]], ...]


class SpliceJob(NamedTuple):
    """A synthesis: a seed, the pattern's name, the number from which all choices follow, and whether it is called."""

    seed: RelaxSeed
    pattern: str
    number: int
    call: bool


class PassesAlone(NamedTuple):
    """A synthesis, and the passes that are to run on it alone."""

    job: SpliceJob
    passes: tuple[str, ...]


class RelaxSynthesis(NamedTuple):
    """A synthesis that was made: the job, the place of its seed, the passes of its pattern, what the worker tells."""

    job: SpliceJob
    place: int
    passes: tuple[str, ...]
    told: Mapping[str, Any]


@dataclass(slots=True)
class RelaxStudy:
    """The figures so far. `refused` counts by reason the syntheses that were not made, `failed` those that should have
    been made; `patterns` the names of patterns that were refused. `alone` and `builds` have an entry for each sample,
    `plain` for each seed that was built as it is."""

    seeds: Counter[str] = field(default_factory=Counter)
    importer: Counter[str] = field(default_factory=Counter)
    sizes: list[int] = field(default_factory=list)
    drawn: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    patterns: dict[str, str] = field(default_factory=dict)
    made: list[RelaxSynthesis] = field(default_factory=list)
    alone: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    builds: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    plain: dict[int, dict[str, Any]] = field(default_factory=dict)
    stopped: bool = False
