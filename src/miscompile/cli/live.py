"""The display of a running campaign: a live table on a terminal, a plain line every few seconds elsewhere.

There is no refresh thread, because workers are forked while the table is shown; events redraw it.
"""

import errno
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from miscompile.core.arms import ArmYield, arms_rows
from miscompile.core.events import Event, Found, Progress
from miscompile.reports.progress import ProgressLines, RecentRate, progress_line

_REDRAW = 0.2
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
        self._shown_at = -_REDRAW
        self._rate = RecentRate()
        self._lines = ProgressLines(self._print_line, seconds, tests)
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
        if isinstance(event, Found):
            self._classes[str(event.finding.property.signature)] += 1
        if self._live is None or not isinstance(event, Progress):
            self._lines.on(event)
        if isinstance(event, Progress):
            self._last = event
            self._rate.add(event)
            if self._live is not None and event.seconds - self._shown_at >= _REDRAW:
                self._shown_at = event.seconds
                self._live.update(self._picture(), refresh=True)

    def _print_line(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)

    def _picture(self) -> Group:
        line = progress_line(self._last, self._rate.per_second, len(self._classes), self._limits)
        parts: list[Text | Table] = [Text(line)]
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


def arms_line(arms: Mapping[str, ArmYield]) -> str:
    """Return one line with the shares and the new signatures of the arms that take most of the time."""
    rows = arms_rows(arms, _ARMS)
    return "time: " + ", ".join(f"{name} {share} ({new} new)" for name, share, _, new, *_ in rows)
