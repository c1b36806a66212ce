"""When a series of measurements is a finding: pure functions of numbers.

Scripts contain these functions, so this module needs the standard library alone. A `BuildCost` holds the measurements
of one build of one program. Whatever has to be much counts with its least measurement, and whatever it is held against
with its greatest one, so that a machine that is busy for a while makes no finding: all measurements must show it.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

CostClass = Literal["compile time", "compile memory", "growth", "run time"]

REPEATS = 3
"""Measurements of every build that a finding needs."""

DOUBLINGS = 3
"""Doublings over which growth must be too fast."""

COMPILE_RATIO, COMPILE_SECONDS = 20.0, 5.0
"""An optimised build takes too long from so many times the CPU time of the unoptimised one on, and so many seconds."""

RISE = 1.5
"""Factor by which the ratio of both builds must rise over the doublings: a build may be slow, but in proportion."""

MEMORY_RATIO, MEMORY_BYTES = 20.0, 512 << 20
"""An optimised build grows memory too much from so many times what the unoptimised build and its run need, and so
many bytes on."""

POWER, STEP_POWER, GROWTH_SECONDS = 2.3, 2.1, 0.5
"""Growth is too fast from this power of the size over all doublings, this one in each of them, and so many CPU seconds
of the largest build on. A quadratic build whose working set leaves a cache stays below."""

RUN_RATIO, RUN_SECONDS = 10.0, 0.2
"""Optimised code is too slow from so many times the CPU time of unoptimised code on, in repeats of so many seconds."""

_BEYOND = 0.1
"""Share of the time of a build beyond its proportion that is taken for more than noise."""

_TICK = 1e-4
"""CPU seconds below which nothing is told apart."""


class BuildCost(NamedTuple):
    """The measurements of one build: CPU seconds of the build, CPU seconds of one run, bytes of both stages.

    `run_spent` are the CPU seconds of all repeats of a run. `ended` is False when a limit of time ended a build: its
    seconds are then the least that it takes.
    """

    compile_cpu: tuple[float, ...]
    run_cpu: tuple[float, ...]
    run_spent: tuple[float, ...]
    compile_bytes: tuple[int, ...]
    all_bytes: tuple[int, ...]
    ended: bool = True


class Row(NamedTuple):
    """One size of a series: the number of copies, of nodes, and the cost of the unoptimised and the optimised build."""

    copies: int
    nodes: int
    plain: BuildCost
    full: BuildCost


def violations(rows: Sequence[Row], only: str = "", share: float = 1.0, *, quick: bool = False) -> list[CostClass]:
    """Return what costs too much in a series whose rows double in size, the smallest first; `only` one class if named.

    `share` scales what has to be spent at least (seconds and bytes), but no ratio and no power: a reduction asks for
    less, because it asks often. With `quick`, one short measurement of each size suffices.
    """
    repeats = 1 if quick else REPEATS
    measured = [row for row in rows if min(len(row.plain.compile_cpu), len(row.full.compile_cpu)) >= repeats]
    found: list[CostClass] = []
    if not measured or len(measured) < len(rows):
        return found
    if _slow_build(measured, share):
        found.append("compile time")
    if _grows(measured, share):
        found.append("growth")
    if _fat_build(measured[-1], share):
        found.append("compile memory")
    if _slow_code(measured[-1], 0.0 if quick else share):
        found.append("run time")
    return [one for one in found if only in ("", one)]


def ratio(row: Row) -> float:
    """Return how many times the CPU time of the unoptimised build the optimised one takes, at least."""
    return min(row.full.compile_cpu) / max(*row.plain.compile_cpu, _TICK)


def run_ratio(row: Row) -> float:
    """Return how many times the CPU time of unoptimised code the optimised one takes, at least; 0 if none ran."""
    if not row.full.run_cpu or not row.plain.run_cpu:
        return 0.0
    return min(row.full.run_cpu) / max(*row.plain.run_cpu, 1e-7)


def power(small: Row, large: Row) -> float:
    """Return the power of the number of nodes with which the CPU time of the optimised build grows, at least."""
    if large.nodes <= small.nodes:
        return 0.0
    grown = min(large.full.compile_cpu) / max(*small.full.compile_cpu, _TICK)
    return math.log(max(grown, 1e-9)) / math.log(large.nodes / small.nodes)


def _slow_build(rows: Sequence[Row], share: float) -> bool:
    last = rows[-1]
    if ratio(last) < COMPILE_RATIO or min(last.full.compile_cpu) < share * COMPILE_SECONDS or not last.plain.ended:
        return False
    before = [row for row in rows if row.copies * 2**DOUBLINGS <= last.copies]
    if not before:
        return False
    first = before[-1]
    least = max(first.full.compile_cpu) / max(min(first.plain.compile_cpu), _TICK)
    return ratio(last) >= RISE * least


def _grows(rows: Sequence[Row], share: float) -> bool:
    series = rows[-DOUBLINGS - 1 :]
    if len(series) <= DOUBLINGS or min(series[-1].full.compile_cpu) < share * GROWTH_SECONDS:
        return False
    if not all(row.full.ended for row in series):
        return False
    steps = [power(small, large) for small, large in pairwise(series)]
    return min(steps) > STEP_POWER and power(series[0], series[-1]) > POWER


def _fat_build(row: Row, share: float) -> bool:
    if not row.full.compile_bytes or not row.plain.all_bytes or min(row.plain.all_bytes) <= 0:
        return False
    most = min(row.full.compile_bytes)
    return most >= share * MEMORY_BYTES and most >= MEMORY_RATIO * max(row.plain.all_bytes)


def _slow_code(row: Row, share: float) -> bool:
    spent = min(row.full.run_spent, default=0.0)
    return spent >= share * RUN_SECONDS and run_ratio(row) >= RUN_RATIO


def suspicions(small: Row, large: Row, most: int) -> list[CostClass]:
    """Return what may cost too much in a series of up to `most` copies, by a first measurement of two sizes.

    It is generous, because a suspicion only leads to more measurements. Whatever the larger build takes beyond its
    proportion may be quadratic, however small it is beside the rest.
    """
    found: list[CostClass] = []
    further, larger = max(1.0, most / large.copies), large.nodes / small.nodes
    seconds = min(large.full.compile_cpu)
    beyond = max(0.0, seconds - larger * min(small.full.compile_cpu))
    expected = seconds * further + beyond * further**2
    plain = max(*large.plain.compile_cpu, _TICK) * further
    if beyond > _BEYOND * seconds and expected >= COMPILE_SECONDS / 2 and expected / plain >= COMPILE_RATIO / 2:
        found.append("compile time")
    if beyond > _BEYOND * seconds and beyond * further**2 >= GROWTH_SECONDS / 2:
        found.append("growth")
    grown = min(large.full.compile_bytes, default=0)
    if grown >= (8 << 20) and grown >= MEMORY_RATIO / 2 * max(large.plain.all_bytes, default=0):
        found.append("compile memory")
    if run_ratio(large) >= RUN_RATIO / 2:
        found.append("run time")
    return found
