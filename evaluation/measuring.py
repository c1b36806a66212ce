"""A table from its options to its figures: progress while it is measured, JSON as figures come, text at the end."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click
from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from evaluation.measures import Watch
from miscompile.api.plans import cpus, new_seed
from miscompile.base.errors import UsageError
from miscompile.cli.campaigns import terminated_as_interrupt
from miscompile.cli.options import ready

_REDRAW, _LINE_EVERY = 0.2, 5.0
"""Seconds between two pictures on a terminal, and between two lines of one series elsewhere."""


class Figures(Protocol):
    """The figures of a table."""

    def as_json(self) -> dict[str, Any]:
        """Return everything as a JSON object."""
        ...


F = TypeVar("F", bound=Figures)
D = TypeVar("D")


def chosen(given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a command with a seed, the number of workers, and targets that can run here.

    Raises UsageError for a target that cannot.
    """
    settings = dict(given)
    if settings["seed"] is None:
        settings["seed"] = new_seed()
    if "workers" in settings:
        settings["workers"] = settings["workers"] or cpus()
    if "targets" in settings:
        settings["targets"] = tuple(ready(target) for target in settings["targets"])
    return settings


def measured(
    name: str,
    seed: int | None,
    out: Path | None,
    run: Callable[[Watch], Iterator[F]],
    view: Callable[[F], RenderableType],
) -> int:
    """Measure the table called `name` and print it; return the exit code, which is 0 whatever the figures are.

    `seed` is None for a table without a random choice.

    `run` yields all figures so far, again and again. With `out` they are written there each time, `-` prints them as
    JSON in place of the text. Ctrl-C keeps those measured so far. Raises UsageError when `out` cannot be written.
    """
    to_stdout = out is not None and str(out) == "-"
    file = None if to_stdout else out
    if file is not None:
        _writable(file)
    errors = Console(stderr=True)
    errors.print(name if seed is None else f"{name}, seed {seed}", highlight=False)
    figures, stopped = _until_stopped(run, file, errors)
    if to_stdout:
        click.echo(json.dumps(None if figures is None else figures.as_json(), indent=1))
    elif figures is not None:
        Console().print(view(figures))
    if stopped:
        errors.print("stopped; these are the figures so far", highlight=False)
    return 0


def _until_stopped(run: Callable[[Watch], Iterator[F]], file: Path | None, errors: Console) -> tuple[F | None, bool]:
    """Measure until done or interrupted, writing the figures so far as they come; tell whether it was stopped."""
    figures: F | None = None
    with _Progress(errors) as progress, terminated_as_interrupt():
        try:
            for figures in run(progress.on):
                if file is not None:
                    file.write_text(json.dumps(figures.as_json(), indent=1), "utf-8")
        except KeyboardInterrupt:
            return figures, True
    return figures, False


def measured_at_once(
    out: Path | None, measure: Callable[[], D], text: Callable[[D], str], data_of: Callable[[D], object] = lambda it: it
) -> int:
    """Measure a table that has no figures before its end, and print its text; return the exit code, which is 0.

    With `out` its data go there as JSON, `-` prints them in place of the text. Values without a JSON form are written
    as Python prints them. Raises UsageError when `out` cannot be written, before anything is measured.
    """
    to_stdout = out is not None and str(out) == "-"
    if out is not None and not to_stdout:
        _writable(out)
    figures = measure()
    written = json.dumps(data_of(figures), indent=1, default=str)
    if out is not None and not to_stdout:
        out.write_text(written, "utf-8")
    click.echo(written if to_stdout else text(figures))
    return 0


def _writable(out: Path) -> None:
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.touch()
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror}; choose another --json") from None


class _Progress:
    """Shows what is being measured: a line that changes on a terminal, elsewhere one every few seconds.

    There is no refresh thread, because workers are forked meanwhile. A context manager.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._what = ""
        self._shown = 0.0

    def __enter__(self) -> "_Progress":
        if self._console.is_terminal:
            self._live = Live(Text(""), console=self._console, auto_refresh=False, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def on(self, what: str, done: int, total: int) -> None:
        """Show that `done` of `total` steps of something are done."""
        now = time.monotonic()
        pause = _REDRAW if self._live else _LINE_EVERY
        if what == self._what and done < total and now - self._shown < pause:
            return
        self._what, self._shown = what, now
        line = Text(f"{what}: {done:,} of {total:,}")
        if self._live:
            self._live.update(line, refresh=True)
        else:
            self._console.print(line, soft_wrap=True)
