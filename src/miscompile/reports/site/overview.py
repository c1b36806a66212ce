"""The figures of the overview: findings by what readers group them by, their course over the tests, and CPU shares."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from miscompile.reports.site.content import GROUPS, Contents, Entry, FindingGroup

STAGES = {
    "generate_us": "generation",
    "transfer_us": "transfer to the workers",
    "compiler_cpu_us": "compiler",
    "judge_us": "judgement",
    "search_us": "search for culprits",
    "triage_us": "triage",
}
"""Counters of CPU time in microseconds, with the work that each counts."""

WIDTH, HEIGHT = 400.0, 190.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 34.0, 10.0, 12.0, 26.0


@dataclass(frozen=True, slots=True)
class Tally:
    """The number of findings that share something; `query` is the fragment of the page's address that lists them."""

    name: str
    counts: Mapping[FindingGroup, int]
    query: str

    @property
    def total(self) -> int:
        """The number of findings in all groups."""
        return sum(self.counts.values())


@dataclass(frozen=True, slots=True)
class Curve:
    """The course of one group: the data of an SVG path, and the number at its end."""

    group: FindingGroup
    path: str
    total: int


@dataclass(frozen=True, slots=True)
class Chart:
    """The findings of a store over its tests, up to the test `last`; `ticks` are (place, text) of the vertical axis."""

    label: str
    curves: Sequence[Curve]
    ticks: Sequence[tuple[float, str]]
    last: int


def tallies(entries: Iterable[Entry], key: str, names: Callable[[Entry], Iterable[str]]) -> list[Tally]:
    """Return the findings counted by each of the `names` of an entry, most first; `key` is the filter's name."""
    counts: dict[str, Counter[FindingGroup]] = {}
    for entry in entries:
        for name in names(entry):
            counts.setdefault(name, Counter())[entry.group] += 1
    found = [
        Tally(name, {group: one[group] for group in GROUPS if one[group]}, f"{key}={quote(name, safe='')}")
        for name, one in counts.items()
    ]
    return sorted(found, key=lambda tally: (-tally.total, tally.name))


def breakdowns(entries: Sequence[Entry]) -> dict[str, list[Tally]]:
    """Return the tallies by target, technique, check, culprit pass and kind; those without findings are left out."""
    found = {
        "target": tallies(entries, "target", lambda entry: [entry.target or entry.record.signature.partition(":")[0]]),
        "technique": tallies(entries, "arm", lambda entry: [entry.arm] if entry.arm else []),
        "check": tallies(entries, "check", lambda entry: [entry.check] if entry.check else []),
        "culprit pass": tallies(entries, "pass", lambda entry: entry.record.culprits),
        "kind": tallies(entries, "kind", lambda entry: [entry.record.kind]),
    }
    return {name: rows for name, rows in found.items() if rows}


def chart(contents: Contents) -> Chart | None:
    """Return the course of a store's findings; None when no finding has a test that is known."""
    seen = sorted((entry.record.first_seen, entry.group) for entry in contents.entries if entry.record.first_seen >= 0)
    if not seen:
        return None
    last = max(contents.summary.tests, seen[-1][0], 1)
    totals = Counter(group for _, group in seen)
    most = max(totals.values())
    step = next(size for size in _steps() if most / size <= 4)
    top = -(-most // step) * step
    curves = [
        Curve(group, _path([test for test, one in seen if one == group], last, top), totals[group])
        for group in GROUPS
        if totals[group]
    ]
    return Chart(contents.label, curves, [(_y(tick, top), str(tick)) for tick in range(0, top + 1, step)], last)


def stages(counters: Mapping[str, int]) -> list[tuple[str, float, float]]:
    """Return (work, CPU seconds, share of all) of each stage of a campaign that spent time, most first."""
    spent = {title: counters.get(name, 0) / 1e6 for name, title in STAGES.items()}
    whole = sum(spent.values())
    rows = [(title, seconds, seconds / whole) for title, seconds in spent.items() if seconds]
    return sorted(rows, key=lambda row: -row[1])


def _steps() -> Iterable[int]:
    size = 1
    while True:
        yield from (size, 2 * size, 5 * size)
        size *= 10


def _path(tests: Sequence[int], last: int, top: int) -> str:
    parts = [f"M{_x(0, last):.1f} {_y(0, top):.1f}"]
    for number, test in enumerate(tests, 1):
        parts.append(f"H{_x(test, last):.1f}V{_y(number, top):.1f}")
    return f"{''.join(parts)}H{_x(last, last):.1f}"


def _x(test: int, last: int) -> float:
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * test / last


def _y(count: int, top: int) -> float:
    return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * count / max(top, 1)
