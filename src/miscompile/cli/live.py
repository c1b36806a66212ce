"""The display of a running campaign: a live table on a terminal, a plain line every few seconds elsewhere.

There is no refresh thread, because workers are forked while the table is shown; events redraw it.
"""

import errno
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from miscompile.cli.verbosity import Verbosity
from miscompile.core.arms import ArmYield, arms_rows
from miscompile.core.events import Event, Found, Notice, Progress, Started, Suspected, WorkPhase
from miscompile.reports.progress import LINE_EVERY, RecentRate, clock, found_line, progress_line, suspect_line
from miscompile.reports.tables import PlainTable, plain_table

_REDRAW = 0.2
_SOON = 1.0
"""Seconds before a phase is told where lines are printed: a short one needs none."""
_REPEAT_EVERY = 60.0
"""Seconds after which a line about a phase is printed again although nothing has changed."""
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

    `seconds` and `tests` are this session's limits, None for none. `head` is printed when the campaign starts, because
    no folder may be named before its options are known to work.
    """

    def __init__(
        self,
        console: Console,
        seconds: float | None = None,
        tests: int | None = None,
        level: Verbosity = Verbosity.NORMAL,
        head: str = "",
    ) -> None:
        self._console, self._level, self._head = console, level, head
        self._limits = (seconds, tests)
        self._live: Live | None = None
        self._classes: Counter[str] = Counter()
        self._shown_at = -LINE_EVERY
        self._rate = RecentRate()
        self._last: Progress | None = None
        self._phase: _RunningPhase | None = None
        self._told = ""

    def __enter__(self) -> "LiveDisplay":
        if self._console.is_terminal and self._level > Verbosity.QUIET:
            self._live = Live(self._picture(), console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            with terminal_may_close():
                self._live.update(Text(""))
                self._live.stop()
            self._live = None

    def on(self, event: Event) -> None:
        """Show `event`; nothing once the terminal was closed, because the campaign must not depend on it."""
        if self._level > Verbosity.QUIET:
            with terminal_may_close():
                self._show(event)

    def _show(self, event: Event) -> None:
        match event:
            case Progress():
                self._progress(event)
            case WorkPhase():
                self._phase_told(event)
            case Started():
                self._phase = None
                if self._head:
                    self._print_line(self._head)
            case Suspected():
                self._print_line(suspect_line(event))
            case Found():
                self._found(event)
            case Notice(text, detail):
                if not detail or self._level > Verbosity.NORMAL:
                    self._print_line(text)

    def _found(self, found: Found) -> None:
        self._classes[str(found.finding.property.signature)] += 1
        if found.fresh or self._level > Verbosity.NORMAL:
            self._print_line(found_line(found))

    def _progress(self, progress: Progress) -> None:
        self._last, self._phase = progress, None
        self._rate.add(progress)
        pause = _REDRAW if self._live else LINE_EVERY
        if progress.seconds - self._shown_at < pause:
            return
        self._shown_at = progress.seconds
        if self._live:
            self._live.update(self._picture(), refresh=True)
        else:
            self._print_line(self._figures(progress))

    def _phase_told(self, phase: WorkPhase) -> None:
        """Show a phase: at once and often on a terminal; elsewhere, if it takes long, every few seconds."""
        running, now = self._phase, time.monotonic()
        if running is None or running.phase.what != phase.what:
            running = self._phase = _RunningPhase(phase, now, now)
        running.phase = phase
        if now - running.shown < (_REDRAW if self._live else LINE_EVERY if running.told else _SOON):
            return
        line = running.line(now)
        if self._live:
            running.shown = now
            self._live.update(self._picture(), refresh=True)
        elif line != self._told or now - running.shown >= _REPEAT_EVERY:
            running.shown, running.told, self._told = now, True, line
            self._print_line(line)

    def _figures(self, progress: Progress) -> str:
        return progress_line(progress, self._rate.per_second, len(self._classes), self._limits)

    def _print_line(self, text: str) -> None:
        self._console.print(Text(text), soft_wrap=True)

    def _picture(self) -> Group:
        parts: list[Text | PlainTable] = []
        if self._last is not None:
            parts.append(Text(self._figures(self._last)))
        if self._classes:
            table = plain_table("class", numbers=("seen",), cut=("class",))
            for name, count in self._classes.most_common(_CLASSES):
                table.add_row(name, str(count))
            parts.append(table)
        if self._last is not None and self._last.arms and self._level > Verbosity.NORMAL:
            parts.append(Text(arms_line(self._last.arms)))
        if self._phase is not None:
            parts.append(Text(self._phase.line(time.monotonic())))
        return Group(*parts)


@dataclass(slots=True)
class _RunningPhase:
    """A phase with the times at which it began and was last shown."""

    phase: WorkPhase
    begun: float
    shown: float
    told: bool = False

    def line(self, now: float) -> str:
        """Return the phase, its count, and an estimate of the time that it still takes."""
        phase = self.phase
        text, word, left = phase.what, "at most", phase.left
        if phase.total:
            text += f": {phase.done:,} of {phase.total:,}"
        elif phase.done:
            text += f": {phase.done:,}"
        if phase.total and phase.done:
            guess = (now - self.begun) / phase.done * (phase.total - phase.done)
            word, left = "about", guess if left is None else min(left, guess)
        if left is not None:
            text += f", {word} {clock(left)} left"
        return f"{text}; {phase.detail}" if phase.detail else text


def arms_line(arms: Mapping[str, ArmYield]) -> str:
    """Return one line with the shares and the new signatures of the arms that take most of the time."""
    rows = arms_rows(arms, _ARMS)
    return "time: " + ", ".join(f"{name} {share} ({new} new)" for name, share, _, new, *_ in rows)
