"""The progress of a campaign as lines of text."""

from collections import deque
from collections.abc import Mapping

from miscompile.base.wording import counted
from miscompile.core.events import Event, Found, Notice, Progress, ProgressListener, Suspected

LINE_EVERY = 5.0
"""Seconds between two lines of counters."""

_WINDOW = 10.0


class RecentRate:
    """Tests a second over the last ten seconds."""

    def __init__(self) -> None:
        self._recent: deque[tuple[float, int]] = deque()

    def add(self, progress: Progress) -> None:
        """Take the counters of `progress` into account."""
        self._recent.append((progress.seconds, progress.counters.get("tests", 0)))
        while len(self._recent) > 2 and self._recent[1][0] < progress.seconds - _WINDOW:
            self._recent.popleft()

    @property
    def per_second(self) -> float:
        """The rate; 0.0 before the first progress."""
        if not self._recent:
            return 0.0
        first, last = self._recent[0], self._recent[-1]
        if last[0] > first[0]:
            return (last[1] - first[1]) / (last[0] - first[0])
        return last[1] / last[0] if last[0] else 0.0


class ProgressLines:
    """Listener that gives `tell` a line for each suspect, finding and notice, and the counters every five seconds.

    `seconds` and `tests` are this session's limits, None for none.
    """

    def __init__(self, tell: ProgressListener, seconds: float | None, tests: int | None) -> None:
        self._tell, self._limits = tell, (seconds, tests)
        self._rate = RecentRate()
        self._signatures: set[str] = set()
        self._shown_at = -LINE_EVERY

    def on(self, event: Event) -> None:
        """Tell of `event`."""
        match event:
            case Progress():
                self._rate.add(event)
                if event.seconds - self._shown_at >= LINE_EVERY:
                    self._shown_at = event.seconds
                    self._tell(progress_line(event, self._rate.per_second, len(self._signatures), self._limits))
            case Found():
                self._signatures.add(str(event.finding.property.signature))
                if event.fresh:
                    self._tell(found_line(event))
            case Suspected():
                self._tell(suspect_line(event))
            case Notice(text, detail):
                if not detail:
                    self._tell(text)


def suspect_line(suspected: Suspected) -> str:
    """Return one line on a violation that is still to be examined."""
    return f"suspect: {suspected.identifier}: {suspected.signature}{_size(suspected.nodes)}"


def found_line(found: Found) -> str:
    """Return one line on a finding."""
    finding, again = found.finding, found.finding.facts.get("regression")
    word = "known" if not found.fresh else f"found a regression of {again['fixed_in']}," if again else "found"
    size = _size(int(finding.facts.get("nodes") or 0))
    return f"{word} {finding.identifier}: {finding.property.signature}{size}: {finding.message}"


def _size(nodes: int) -> str:
    return f" ({counted(nodes, 'node')})" if nodes else ""


def progress_line(
    progress: Progress, rate: float, classes: int, limits: tuple[float | None, int | None] = (None, None)
) -> str:
    """Return one line of figures; `rate` in tests a second, `classes` the number of signatures seen."""
    counters, (seconds, tests) = progress.counters, limits
    deaths = counted(counters.get("deaths", 0), "death")
    of_time = f"/{clock(seconds)}" if seconds else ""
    of_tests = f"/{tests:,}" if tests else ""
    told = counted(counters.get("tests", 0), "test") if not tests else f"{counters.get('tests', 0):,}{of_tests} tests"
    if not counters.get("tests"):
        return f"{clock(progress.seconds)}{of_time}  no test has ended yet"
    return (
        f"{clock(progress.seconds)}{of_time}  {told}  {rate:.0f}/s  "
        f"{valid_share(counters):.0%} valid  {counted(classes, 'finding')}  {deaths}"
        f"{f'  {progress.disk / 1e6:,.1f} MB' if progress.disk else ''}"
    )


def valid_share(counters: Mapping[str, int]) -> float:
    """Return the share of tests that the compiler accepted, 0 before the first."""
    tests = counters.get("tests", 0)
    return 1 - (counters.get("invalid", 0) + counters.get("unsupported", 0)) / tests if tests else 0.0


def clock(seconds: float) -> str:
    """Return seconds as `m:ss` or `h:mm:ss`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
