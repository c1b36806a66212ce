"""The display of a running campaign: a live table on a terminal, a plain line every few seconds elsewhere.

There is no refresh thread, because workers are forked while the table is shown; events redraw it.
"""

import errno
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from miscompile.core.arms import ArmYield, arms_rows
from miscompile.core.events import Event, Found, Notice, Progress

_REDRAW = 0.2
_LINE_EVERY = 5.0
_WINDOW = 10.0
_CLASSES = 12
_ARMS = 5


@contextmanager
def terminal_may_close() -> Iterator[None]:
    """Ignore a write error inside this block that says that the terminal, or the reader of the pipe, is gone."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EIO, errno.EPIPE):
            raise


class LiveDisplay:
    """Listener that shows progress on `console` (stderr); a context manager.

    `seconds` and `tests` are this session's limits, None for none.
    """

    def __init__(self, console: Console, seconds: float | None, tests: int | None) -> None:
        self._console = console
        self._limits = (seconds, tests)
        self._live: Live | None = None
        self._classes: Counter[str] = Counter()
        self._shown_at = -_LINE_EVERY
        self._recent: deque[tuple[float, int]] = deque()
        self._last = Progress(0.0, {})

    def __enter__(self) -> "LiveDisplay":
        if self._console.is_terminal:
            self._live = Live(self._picture(), console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            with terminal_may_close():
                self._live.stop()
            self._live = None

    def on(self, event: Event) -> None:
        """Show `event`; nothing once the terminal was closed, because the campaign must not depend on it."""
        with terminal_may_close():
            self._show(event)

    def _show(self, event: Event) -> None:
        match event:
            case Progress():
                self._progress(event)
            case Found(finding, fresh):
                self._classes[str(finding.property.signature)] += 1
                if fresh:
                    nodes = finding.facts.get("nodes")
                    again = finding.facts.get("regression")
                    word = f"a regression of {again['fixed_in']}, " if again else ""
                    size = f" ({nodes} node{'' if nodes == 1 else 's'})" if nodes else ""
                    self._print_line(
                        f"found {word}{finding.identifier}: {finding.property.signature}{size}: {finding.message}"
                    )
            case Notice(text):
                self._print_line(text)

    def _progress(self, progress: Progress) -> None:
        self._last = progress
        self._recent.append((progress.seconds, progress.counters.get("tests", 0)))
        while len(self._recent) > 2 and self._recent[1][0] < progress.seconds - _WINDOW:
            self._recent.popleft()
        pause = _REDRAW if self._live else _LINE_EVERY
        if progress.seconds - self._shown_at < pause:
            return
        self._shown_at = progress.seconds
        if self._live:
            self._live.update(self._picture(), refresh=True)
        else:
            self._print_line(progress_line(progress, self._rate(), sum(1 for _ in self._classes), self._limits))

    def _rate(self) -> float:
        first, last = self._recent[0], self._recent[-1]
        if last[0] > first[0]:
            return (last[1] - first[1]) / (last[0] - first[0])
        return last[1] / last[0] if last[0] else 0.0

    def _print_line(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)

    def _picture(self) -> Group:
        rate = self._rate() if self._recent else 0.0
        parts: list[Text | Table] = [Text(progress_line(self._last, rate, len(self._classes), self._limits))]
        if self._classes:
            table = Table(box=None, pad_edge=False, header_style="bold")
            table.add_column("class", overflow="ellipsis", no_wrap=True)
            table.add_column("seen", justify="right")
            for name, count in self._classes.most_common(_CLASSES):
                table.add_row(Text(name), str(count))
            parts.append(table)
        if self._last.arms:
            parts.append(Text(arms_line(self._last.arms)))
        return Group(*parts)


def progress_line(
    progress: Progress, rate: float, classes: int, limits: tuple[float | None, int | None] = (None, None)
) -> str:
    """Return one line of figures; `rate` in tests a second, `classes` the number of signatures seen."""
    counters, (seconds, tests) = progress.counters, limits
    of_time = f"/{clock(seconds)}" if seconds else ""
    of_tests = f"/{tests:,}" if tests else ""
    return (
        f"{clock(progress.seconds)}{of_time}  {counters.get('tests', 0):,}{of_tests} tests  {rate:.0f}/s  "
        f"{valid_share(counters):.0%} valid  {classes} findings  {counters.get('deaths', 0)} deaths"
        f"{f'  {progress.disk / 1e6:,.1f} MB' if progress.disk else ''}"
    )


def arms_line(arms: Mapping[str, ArmYield]) -> str:
    """Return one line with the shares and the new signatures of the arms that take most of the time."""
    rows = arms_rows(arms, _ARMS)
    return "time: " + ", ".join(f"{name} {share} ({new} new)" for name, share, _, new, *_ in rows)


def valid_share(counters: Mapping[str, int]) -> float:
    """Return the share of tests that the compiler accepted, 0 before the first."""
    tests = counters.get("tests", 0)
    return 1 - (counters.get("invalid", 0) + counters.get("unsupported", 0)) / tests if tests else 0.0


def clock(seconds: float) -> str:
    """Return seconds as `m:ss` or `h:mm:ss`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
