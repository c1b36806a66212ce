"""The oracle of cost: an optimised build must not take time or memory out of proportion.

A generated program is small, so the oracle makes a doubling series of it: the program several times in one (the
transform `copies`). A quick measurement of two sizes tells whether a longer series may show something. If so, the
series is doubled until it does, and then every build of it is measured three times anew, on CPU time. `cost_rules`
decides. Values are not compared.
"""

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from miscompile.base.errors import ModelError
from miscompile.base.specs import Spec
from miscompile.core.case import Case, Program
from miscompile.core.outcome import Measured, Outcome, TimedOut, Values, status_of
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence, Holds, Inconclusive, Needs, Verdict, Violated
from miscompile.graph.copies import DEEPEST, PATTERNS
from miscompile.graph.model import Graph
from miscompile.graph.read import read
from miscompile.oracles.cost_rules import (
    COMPILE_RATIO,
    COMPILE_SECONDS,
    DOUBLINGS,
    REPEATS,
    BuildCost,
    CostClass,
    Row,
    power,
    ratio,
    run_ratio,
    suspicions,
    violations,
)
from miscompile.oracles.kinds import NoOptions, OracleContext, OracleKind
from miscompile.targets.registry import parse_target

ORACLE = "cost"
"""The name of this oracle in recipes, of its rule and of the kind of its findings."""

_SCREENED, _SCREENED_NODES = 4, 160
"""A series begins with two sizes, this factor apart, the larger one of about so many nodes; a quarter for
compilers that get a lowered program, because those take seconds for it."""

MOST_COPIES, MOST_NODES = 2048, 20_000
"""The largest program of a series."""

_EASED, _ROOM = 0.05, 3.0
"""Share of the least seconds and bytes of a finding that a reduction asks for, and how far its series exceeds it."""

_LONG = 4.0
"""CPU seconds of a build after which a series is not doubled further: the next one would meet the time limit."""

_SIZES = 8
"""Most sizes of a series, so that the rounds of an examination suffice."""

_QUICK, _JUDGED = 1, 2
"""Numbers of measurements (`Build.measure`): the quick one, and the first of those that are judged."""

_FLOATS = frozenset({"float32", "float64", "float16"})


_FULL, _OFF = Build("full"), Build("off")


@dataclass(frozen=True, slots=True)
class CostSeries:
    """Measures a doubling series of a program in two builds, `reference` and `faulty`.

    The largest program of the first round has about `nodes` nodes. With `whole` all doublings below it are measured at
    once; with `doubled` the series goes on where it promises something. `only` is the class of a finding (empty: any),
    `share` scales the least seconds and bytes. With `repeats` of 1 the quick measurements decide.
    """

    target: str
    faulty: Build = _FULL
    reference: Build = _OFF
    patterns: tuple[str, ...] = PATTERNS
    nodes: int = _SCREENED_NODES
    whole: bool = False
    doubled: bool = True
    only: str = ""
    share: float = 1.0
    repeats: int = REPEATS

    def plan(self, case: Case, rng: random.Random) -> tuple[Run, ...]:
        """Return both builds of the program itself, and quick measurements of the first sizes of one pattern."""
        own = (Run(case, self.target, self.reference), Run(case, self.target, self.faulty))
        pattern = rng.choice(self.patterns)
        nodes = nodes_of(case.program)
        if not nodes or not any(port.dtype in _FLOATS for port in case.program.inputs):
            return own
        large = min(_power_of_two(math.sqrt(2) * self.nodes / nodes), _most(pattern, nodes))
        sizes = _doublings(large) if self.whole else (max(1, large // _SCREENED), large)
        return (*own, *self._measured(case, pattern, sizes, (_QUICK,)))

    def judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        """Ask for more sizes or more measurements, or decide by those that are there."""
        for outcome in outcomes[:2]:
            if not isinstance(outcome, Values):
                return Inconclusive(f"{status_of(outcome)} before any series")  # other oracles judge that
        if len(runs) == 2:
            return Inconclusive("no series can be made of the program")
        pattern = str(dict(_transform(runs[2]).options)["pattern"])
        judged = self._rows(runs, outcomes, final=True)
        if any(run.build.measure >= _JUDGED for run in runs):
            return self._decided(runs, judged, pattern)
        rows = self._rows(runs, outcomes, final=False)
        if not rows:
            return Inconclusive("no member of the series was built")
        if self.repeats == 1:
            return self._decided(runs, rows, pattern)
        sizes = _doublings(rows[-1].copies) if self.doubled else tuple(row.copies for row in rows)
        if violations(rows, self.only, self.share, quick=True):
            return Needs(self._measured(runs[0].case, pattern, sizes, range(_JUDGED, _JUDGED + self.repeats)))
        further = self._further(rows, pattern) if self.doubled else ()
        return Needs(self._measured(runs[0].case, pattern, further, (_QUICK,))) if further else Holds()

    def with_faulty(self, build: Build) -> "CostSeries":
        """Return the same property of another build."""
        return replace(self, faulty=build)

    def strict(self) -> "CostSeries":
        """Return the property with the thresholds of a finding, of the whole series and however long it must be."""
        return replace(self, whole=True, doubled=True, share=1.0, repeats=REPEATS)

    def _measured(self, case: Case, pattern: str, sizes: Iterable[int], measurements: Iterable[int]) -> tuple[Run, ...]:
        """Return the runs of both builds; those of one size follow each other, so that a busy while meets both."""
        numbers = tuple(measurements)
        return tuple(
            Run(case, self.target, replace(build, transform=copies(pattern, size), measure=number))
            for size in sizes
            for number in numbers
            for build in (self.reference, self.faulty)
        )

    def _rows(self, runs: Sequence[Run], outcomes: Sequence[Outcome], *, final: bool) -> list[Row]:
        """Return the table of the judged measurements, or of the quick ones; sizes without both builds are left out."""
        costs: dict[int, dict[Build, list[Outcome]]] = {}
        for run, outcome in zip(runs, outcomes, strict=True):
            if run.build.measure and (run.build.measure >= _JUDGED) == final:
                build = replace(run.build, transform=None, measure=0)
                size = int(dict(_transform(run).options)["n"])
                costs.setdefault(size, {}).setdefault(build, []).append(outcome)
        nodes, found = nodes_of(runs[0].case.program), []
        for size, by_build in sorted(costs.items()):
            plain, full = (_cost(by_build.get(build, ())) for build in (self.reference, self.faulty))
            if plain is not None and full is not None and plain.ended:
                found.append(Row(size, size * nodes, plain, full))
        return found

    def _further(self, rows: Sequence[Row], pattern: str) -> tuple[int, ...]:
        """Return the next sizes of the series, none if it promises nothing."""
        large = rows[-1]
        small = next((row for row in rows if row.copies * _SCREENED >= large.copies), large)
        most = _most(pattern, large.nodes // large.copies)
        found = [one for one in suspicions(small, large, most) if self.only in ("", one)]
        spent = min(large.full.compile_cpu)
        if not found or not large.full.ended or spent > _LONG or len(rows) >= _SIZES:
            return ()
        next_but_one = spent * 4 ** max(1.0, power(small, large))
        sizes = (2 * large.copies,) if next_but_one > 2 * _LONG else (2 * large.copies, 4 * large.copies)
        return tuple(size for size in sizes if size <= most)

    def _decided(self, runs: Sequence[Run], rows: Sequence[Row], pattern: str) -> Verdict:
        found = violations(rows, self.only, self.share, quick=self.repeats == 1)
        if not found:
            return Holds("a cost that further measurements do not confirm")
        details = {"cost": found[0], "pattern": pattern, "copies": rows[-1].copies, "series": [*map(_as_json, rows)]}
        message = message_of(found[0], rows, self.reference.level, self.faulty.level, pattern)
        return Violated(Evidence("cost", ORACLE, message, runs[1], runs[0], "", details))


def copies(pattern: str, size: int) -> Spec:
    """Return the transform that makes a member of a series."""
    return Spec("copies").with_options(pattern=pattern, n=str(size))


@lru_cache(256)
def nodes_of(program: Program) -> int:
    """Return the number of nodes of an ONNX program, those of bodies included; 0 for any other program."""
    if program.kind != "onnx":
        return 0
    try:
        return _count(read(program.payload).graph)
    except ModelError:
        return 0


def message_of(found: CostClass, rows: Sequence[Row], reference: str, faulty: str, pattern: str) -> str:
    """Return the line that says what costs too much."""
    last = rows[-1]
    size = f"{last.copies} copies ({pattern}), {last.nodes} nodes"
    plain, full = max(last.plain.compile_cpu), min(last.full.compile_cpu)
    match found:
        case "compile time":
            return (
                f"compile time: {size} take {full:.3g} s of CPU time at level {faulty}, {plain:.3g} s at level "
                f"{reference}: {ratio(last):.0f} times as much"
            )
        case "growth":
            first = rows[-DOUBLINGS - 1]
            return (
                f"growth: the CPU time of a build at level {faulty} grows with the power {power(first, last):.1f} of "
                f"the size, to {full:.3g} s for {size}; {plain:.3g} s at level {reference}"
            )
        case "compile memory":
            grown, needed = (value / 2**20 for value in (min(last.full.compile_bytes), max(last.plain.all_bytes)))
            return (
                f"compile memory: {size} take {grown:.0f} MiB at level {faulty}, {needed:.0f} MiB at level {reference}"
            )
        case "run time":
            return (
                f"run time: {size} run for {1e3 * min(last.full.run_cpu):.3g} ms of CPU time at level {faulty}, "
                f"{1e3 * max(last.plain.run_cpu):.3g} ms at level {reference}: {run_ratio(last):.0f} times as long"
            )


def _count(graph: Graph) -> int:
    return sum(1 + sum(map(_count, node.subgraphs())) for node in graph.nodes)


def _most(pattern: str, nodes: int) -> int:
    return _power_of_two(min(DEEPEST if pattern == "nest" else MOST_COPIES, max(1, MOST_NODES // nodes)))


def _power_of_two(most: float) -> int:
    """Return the largest power of two up to `most`, at least 1."""
    return 1 << max(0, int(most).bit_length() - 1)


def _doublings(large: int) -> tuple[int, ...]:
    """Return the last sizes of a doubling series that ends with `large`."""
    return tuple(large >> down for down in range(DOUBLINGS, -1, -1) if large >> down)


def _transform(run: Run) -> Spec:
    assert run.build.transform is not None
    return run.build.transform


def _cost(outcomes: Sequence[Outcome]) -> BuildCost | None:
    """Return the measurements of one build, None where one of them has failed.

    A run that fails after the build counts for the build. A build that a time limit ended has taken at least what it
    took until then.
    """
    ended = not any(isinstance(outcome, TimedOut) for outcome in outcomes)
    seconds: list[float] = []
    seen: list[Measured] = []
    for outcome in outcomes:
        observed = outcome.observations
        if observed.measured is not None:
            seconds.append(observed.measured.compile_cpu)
            seen.append(observed.measured)
        elif isinstance(outcome, TimedOut) and outcome.stage == "compile" and observed.cpu_seconds:
            seconds.append(observed.cpu_seconds)
        else:
            return None
    if not seconds:
        return None
    ran = seen if all(one.repeats for one in seen) and len(seen) == len(seconds) else []
    return BuildCost(
        tuple(seconds),
        tuple(one.run_cpu for one in ran),
        tuple(one.run_cpu * one.repeats for one in ran),
        tuple(one.compile_bytes for one in seen),
        tuple(one.compile_bytes + one.run_bytes for one in ran),
        ended,
    )


def _as_json(row: Row) -> dict[str, Any]:
    """Return a row of the series for the report: seconds and bytes of all measurements."""
    return {"copies": row.copies, "nodes": row.nodes, "plain": row.plain._asdict(), "full": row.full._asdict()}


def rows_from(series: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Read back the series that evidence holds."""
    return [Row(one["copies"], one["nodes"], _cost_from(one["plain"]), _cost_from(one["full"])) for one in series]


def _cost_from(stored: Mapping[str, Any]) -> BuildCost:
    return BuildCost._make(
        (*(tuple(stored[name]) for name in BuildCost._fields if name != "ended"), bool(stored["ended"]))
    )


def _eased(rows: Sequence[Row], only: str) -> int:
    """Return the nodes of the program at which a reduction looks for the violation: fewer where it shows as well there.

    A power can only be measured at the sizes that have shown it, and the ratio of both builds falls with the size where
    one of them grows faster.
    """
    showing = [row for row in rows if min(row.full.compile_cpu) >= _ROOM * _EASED * COMPILE_SECONDS]
    if only == "compile time":
        return next((row.nodes for row in showing if ratio(row) >= 1.5 * COMPILE_RATIO), rows[-1].nodes)
    return rows[-1].nodes


def _hold(options: NoOptions, evidence: Evidence, context: OracleContext, facts: Mapping[str, Any]) -> CostSeries:
    """Return the property of a violation, which a reduction can ask often: short series and eased thresholds."""
    del options, facts, context
    details = evidence.details
    rows = rows_from(details["series"])
    reference = evidence.reference.build if evidence.reference else Build("off")
    only = str(details["cost"])
    return CostSeries(
        evidence.faulty.target, evidence.faulty.build, reference, (str(details["pattern"]),), _eased(rows, only),
        whole=True, doubled=False, only=only, share=_EASED, repeats=1,
    )  # fmt: skip


def _make(options: NoOptions, context: OracleContext) -> CostSeries:
    del options
    slow = parse_target(context.target).about.lowered
    nodes = _SCREENED_NODES // 4 if slow else _SCREENED_NODES
    return CostSeries(context.target, Build("full", context.off(context.target)), nodes=nodes)


KIND = OracleKind(ORACLE, "time and memory of builds and of compiled code, on a doubling series", _hold, _make)
