"""The passes of a target in one table: the patterns that trigger each pass, how often it fired, and with which others.

Published fuzzers build compilers with coverage counters to measure which code their tests reach. Observation measures
it for a released wheel, pass by pass.
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from miscompile.base.errors import UsageError
from miscompile.base.rng import stream
from miscompile.core.activity import PassActivity
from miscompile.core.case import Case
from miscompile.core.events import WorkPhase, WorkPhaseListener
from miscompile.core.pool import Pool
from miscompile.core.ports import Producer
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Holds
from miscompile.engine.coordinator import probe_support
from miscompile.engine.plan import Plan
from miscompile.engine.wiring import make_pool, make_producer
from miscompile.findings.store import Store
from miscompile.patterns.shipped import every_pattern
from miscompile.patterns.triggers import reasons
from miscompile.targets.registry import frames_of, names_of, parse_target

_AHEAD = 8
_PRODUCER = "oatest{observe=1, variants=1}"


@dataclass(frozen=True, slots=True)
class PassRow:
    """A pass of a target.

    `patterns` is the number of shipped patterns that trigger it, `reason` why there is none. `fired` counts the
    observed programs that it changed, `tried` those with a pattern that triggers it and `woken` those of them that it
    changed; `combined` counts, for each other pass, the programs that both changed.
    """

    name: str
    patterns: int
    reason: str
    fired: int
    tried: int
    woken: int
    combined: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class PassTable:
    """The passes of `target`; `programs` is the number of observed programs."""

    target: str
    programs: int
    rows: tuple[PassRow, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the table as a JSON object."""
        return {"target": self.target, "programs": self.programs, "passes": list(map(asdict, self.rows))}


def table_of(target: str, counts: PassActivity) -> PassTable:
    """Return the table of a target from the counts."""
    face = parse_target(target).about
    known = _patterns_by_pass(face.name)
    told = reasons(face.name)
    seen = {key.one for key in counts.counts if key.kind == "fired" and key.target == face.name}
    names = dict.fromkeys((*face.passes, *face.rules, *sorted(seen)))
    tally = {(key.kind, key.one, key.other): count for key, count in counts.counts.items() if key.target == face.name}
    beside = _beside(tally)
    rows = tuple(
        PassRow(
            name,
            known.get(name, 0),
            "" if known.get(name) else told.get(name, ""),
            tally.get(("fired", name, ""), 0),
            tally.get(("tried", name, ""), 0),
            tally.get(("woken", name, ""), 0),
            beside.get(name, {}),
        )
        for name in names
    )
    return PassTable(target, tally.get(("programs", "", ""), 0), rows)


def _patterns_by_pass(target: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for pattern in every_pattern():
        for name in pattern.triggers_on(target):
            found[name] = found.get(name, 0) + 1
    return found


def _beside(tally: Mapping[tuple[str, str, str], int]) -> dict[str, dict[str, int]]:
    """Return for each pass the others that changed programs with it, the most frequent first."""
    found: dict[str, dict[str, int]] = {}
    pairs: Iterable[tuple[tuple[str, str, str], int]] = sorted(tally.items(), key=lambda item: -item[1])
    for (kind, one, other), count in pairs:
        if kind == "together":
            found.setdefault(one, {})[other] = count
            found.setdefault(other, {})[one] = count
    return found


def counted(folder: Path) -> tuple[Sequence[str], PassActivity]:
    """Return the targets of the campaigns in `folder`, and their counts. Raises StoreError, UsageError."""
    with Store.open(folder, create=False) as store:
        campaigns, rows = store.campaigns().values(), store.pass_activity()
    if not campaigns or not rows:
        raise UsageError(f"the campaign in {folder} has watched no passes; one with --preset oatest does")
    activity = PassActivity()
    activity.add(rows)
    return list(dict.fromkeys(name for campaign in campaigns for name in campaign.target.split())), activity


def measured(
    target: str,
    seconds: float,
    programs: int | None,
    seed: int,
    on_phase: WorkPhaseListener,
    patterns: str | None = None,
) -> PassActivity:
    """Plant patterns in seeds and count which passes change the resulting programs, until either limit is reached.

    KeyboardInterrupt ends it and returns the counts so far. Re-raises KeyboardInterrupt when no program was counted.
    """
    plan = Plan(target, seed=seed, producers=(_PRODUCER,), patterns=patterns)
    producer = make_producer(plan, probe_support(plan, target, on_phase))
    activity, until = PassActivity(frames_of([target]), names_of([target])), time.monotonic() + seconds
    number = 0
    try:
        with make_pool(plan) as pool:
            while time.monotonic() < until and (programs is None or number < programs):
                ahead = _AHEAD if programs is None else min(_AHEAD, programs - number)
                cases = [producer.propose(stream(seed, "passes", number + turn)) for turn in range(ahead)]
                _watch(cases, target, producer, pool, activity)
                number += len(cases)
                on_phase(WorkPhase("programs watched", number, programs or 0, until - time.monotonic()))
    except KeyboardInterrupt:
        if not number:
            raise
    return activity


def _watch(cases: Sequence[Case], target: str, producer: Producer, pool: Pool, activity: PassActivity) -> None:
    """Run programs and count which passes changed them."""
    runs = [Run(case, target, Build("full", observe=True), "probe") for case in cases]
    for case, run, outcome in zip(cases, runs, pool.run(runs), strict=True):
        producer.learn(case, [outcome], Holds())
        activity.note(case.recipe, run, outcome)
