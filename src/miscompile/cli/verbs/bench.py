"""`miscompile bench`: the tables of published fuzzers, measured again."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol, TypeVar

import click
from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from miscompile.base.errors import UsageError
from miscompile.cli import values
from miscompile.cli.campaigns import cpus, terminated_as_interrupt
from miscompile.cli.environments import ready
from miscompile.cli.options import new_seed

_REDRAW, _LINE_EVERY = 0.2, 5.0
"""Seconds between two pictures on a terminal, and between two lines of one series elsewhere."""


@click.group("bench", short_help="The tables of published fuzzers, measured again.")
def command() -> None:
    """Measure what published fuzzers report of themselves, with this tool, beside their figures.

    \b
    Examples:
      miscompile bench hirfuzz --part diversity
      miscompile bench hirfuzz --targets onnxruntime,toy --tests 200 --json figures.json
      miscompile bench oatest --part splicing --syntheses 500
      miscompile bench opera my-migration
    """


_COMMON = (
    click.option("--limit-seconds", type=click.FloatRange(0, min_open=True), default=30.0, show_default=True,
                 metavar="SECONDS", help="A single run that takes longer is a hang."),
    click.option("--seed", type=click.IntRange(0, 2**63 - 1), metavar="N",
                 help="Seed of every random choice. [default: a new one, which is printed]"),
    click.option("--workers", type=click.IntRange(1, 1024), metavar="N",
                 help="Workers at a time. [default: one for each CPU]"),
    click.option("--json", "out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
                 help="Write all figures into FILE, anew as they come; - is stdout."),
)  # fmt: skip

_HIRFUZZ = (
    click.option("--targets", callback=values.names, default="onnxruntime", show_default=True, metavar="NAMES",
                 help="Compilers for the disruptive and failures parts, as in onnxruntime,toy."),
    click.option("--part", type=click.Choice(["diversity", "disruptive", "failures", "all"]), default="all",
                 show_default=True, help="What to measure."),
    click.option("--graphs", type=click.IntRange(1), default=200, show_default=True, metavar="N",
                 help="Graphs of a repetition (diversity)."),
    click.option("--nodes", type=click.IntRange(1, 1000), default=100, show_default=True, metavar="N",
                 help="Operators of a graph (diversity)."),
    click.option("--repetitions", type=click.IntRange(1), default=10, show_default=True, metavar="N",
                 help="Repetitions (diversity)."),
    click.option("--broken", type=click.IntRange(1), default=170, show_default=True, metavar="N",
                 help="Broken programs for each target (disruptive)."),
    click.option("--tests", type=click.IntRange(1), default=1000, show_default=True, metavar="N",
                 help="Tests for each target and guidance (failures)."),
    click.option("--test-nodes", type=click.IntRange(1, 1000), default=10, show_default=True, metavar="N",
                 help="Operators of a test (failures)."),
    click.option("--patience", type=click.FloatRange(0), default=300.0, show_default=True, metavar="SECONDS",
                 help="Triage of the failures of one series ends after this."),
    *_COMMON,
)  # fmt: skip


_OATEST = (
    click.option("--targets", callback=values.names, default="onnxruntime", show_default=True, metavar="NAMES",
                 help="Compilers to measure with, as in onnxruntime,tvm."),
    click.option("--part", type=click.Choice(["splicing", "ablation", "all"]), default="all", show_default=True,
                 help="What to measure."),
    click.option("--syntheses", type=click.IntRange(1), default=5000, show_default=True, metavar="N",
                 help="Programs for each target (splicing)."),
    click.option("--watched", type=click.IntRange(1), default=1000, show_default=True, metavar="N",
                 help="Programs of a series on which the trigger rate is measured."),
    click.option("--tests", type=click.IntRange(1), default=1000, show_default=True, metavar="N",
                 help="Tests for each target and setting (ablation)."),
    click.option("--programs", type=click.IntRange(0), default=300, show_default=True, metavar="N",
                 help="Generated programs to cut patterns from, besides onnx's node cases (ablation)."),
    click.option("--cases", type=click.IntRange(0), metavar="N",
                 help="How many of onnx's node cases, drawn at random (ablation). [default: all]"),
    click.option("--each", type=click.IntRange(1), default=3, show_default=True, metavar="N",
                 help="Patterns for each pass that fires (ablation)."),
    click.option("--pairs", type=click.Path(exists=True), metavar="PATH",
                 help="Cut patterns from what `miscompile harvest --keep PATH` left there instead (ablation)."),
    click.option("--mutations", type=click.FloatRange(0, 1), default=0.3, show_default=True, metavar="SHARE",
                 help="Share of patterns that are planted in an uncommon setting."),
    click.option("--patience", type=click.FloatRange(0), default=300.0, show_default=True, metavar="SECONDS",
                 help="Triage of the failures of one series ends after this (ablation)."),
    *_COMMON,
)  # fmt: skip


def _with(options: tuple[Callable[[Any], Any], ...]) -> Callable[[Any], Any]:
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


@command.command("hirfuzz", short_help="HIRFUZZ: diversity, disruptive mode, failures.")
@_with(_HIRFUZZ)
def hirfuzz(**given: Any) -> int:  # noqa: ANN401 - click passes options by name
    """Measure the three experiments of HIRFUZZ again: coverage guidance, broken programs, different failures.

    \b
    diversity   operators, dtypes, shapes and edges covered with and without guidance; runs no compiler
    disruptive  single operators with a broken constraint: what dies, hangs, is accepted or refused
    failures    failing tests and different failures, with and without guidance

    \b
    Examples:
      miscompile bench hirfuzz --part diversity --repetitions 3
      miscompile bench hirfuzz --targets onnxruntime,openvino,tvm --seed 1 --json figures.json
      miscompile bench hirfuzz --targets toy --part failures --tests 200

    Figures are printed and, with --json, written as they come; Ctrl-C keeps those measured so far. A bench exits with
    0 whatever it finds; `miscompile fuzz --preset hirfuzz` keeps findings.
    """
    from miscompile.bench.hirfuzz import Options, run
    from miscompile.bench.view import hirfuzz_view

    return _bench("hirfuzz", given, lambda chosen, watch: run(Options(**chosen), watch), hirfuzz_view)


@command.command("oatest", short_help="OATest: splicing, trigger rate, ablations.")
@_with(_OATEST)
def oatest(**given: Any) -> int:  # noqa: ANN401 - click passes options by name
    """Measure the experiments of OATest again: synthesis of patterns into seeds, and what its parts are good for.

    \b
    splicing  validity, patterns that are really inside their seeds, how often their passes fire, time of generation
    ablation  bugs and combinations of passes with patterns that are cut otherwise, or random; with other seeds, or none

    \b
    Examples:
      miscompile bench oatest --part splicing --syntheses 500
      miscompile bench oatest --targets onnxruntime,tvm --seed 1 --json figures.json
      miscompile bench oatest --part ablation --tests 200 --pairs kept-by-harvest

    Figures are printed and, with --json, written as they come; Ctrl-C keeps those measured so far. A bench exits with
    0 whatever it finds; `miscompile fuzz --preset oatest` keeps findings.
    """
    from miscompile.bench.oatest import Options, run
    from miscompile.bench.oatest_view import oatest_view

    return _bench("oatest", given, lambda chosen, watch: run(Options(**chosen), watch), oatest_view)


@command.command("opera", short_help="OPERA: how good orders of migrated tests are.")
@click.argument(
    "folders", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="OUT..."
)
@click.option(
    "--instances",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The archives that were migrated. [default: the libraries' own tests]",
)
@click.option("--orders", callback=values.names, metavar="NAMES", help="Only these orders, as in opera,random.")
@click.option(
    "--repetitions", type=click.IntRange(1), default=5, show_default=True, metavar="N", help="Drawings of each order."
)
@click.option(
    "--coverage",
    is_flag=True,
    help="Collect the statements that tests reach, where the front end is in Python;"
    " needs coverage.py and runs every test.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    metavar="N",
    help="Seed of every random choice. [default: a new one, which is printed]",
)
@click.option(
    "--json",
    "out",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write all figures into FILE, anew as they come; - is stdout.",
)
def opera(folders: tuple[Path, ...], instances: tuple[Path, ...], coverage: bool, **given: Any) -> int:  # noqa: ANN401
    """Measure OPERA's prioritisation again on what `miscompile migrate` has left in OUT.

    A migration has run all tests once; which bugs an order would have found, and when, follows from that. Only
    confirmed findings count. Figures are APFD, RAUC at 25, 50, 75 and 100 % of the tests, the cost of ranking, and the
    time until all bugs are found.

    \b
    Examples:
      miscompile migrate --to tvm --from onnx,torch --order random --out m && miscompile bench opera m --coverage
      miscompile bench opera m --orders opera,random --repetitions 20 --json figures.json
    """
    from miscompile.bench.migrations import Where, subjects
    from miscompile.bench.opera import Options, run
    from miscompile.bench.opera_view import opera_view

    where = Where(folders, instances, coverage)
    given.update(targets=(), workers=1)

    def measured(chosen: dict[str, Any], watch: _Watch) -> Iterator[Any]:
        options = Options(chosen["repetitions"], chosen["seed"], chosen["orders"])
        return run(options, subjects(where, options.seed, lambda text: click.echo(text, err=True)), watch)

    return _bench("opera", given, measured, opera_view)


class _Figures(Protocol):
    """The results of a bench."""

    def as_json(self) -> dict[str, Any]:
        """Return everything as a JSON object."""
        ...


_Results = TypeVar("_Results", bound=_Figures)
_Watch = Callable[[str, int, int], None]


def _bench(
    name: str,
    given: dict[str, Any],
    run: Callable[[dict[str, Any], _Watch], Iterator[_Results]],
    view: Callable[[_Results], RenderableType],
) -> int:
    """Measure with the options in `given`, and print what comes of it."""
    out: Path | None = given.pop("out")
    to_stdout = out is not None and str(out) == "-"
    file = None if to_stdout else out
    seed: int | None = given.pop("seed")
    given["seed"] = new_seed() if seed is None else seed
    given["workers"] = given["workers"] or cpus()
    given["targets"] = tuple(ready(target) for target in given["targets"])
    if file is not None:
        _writable(file)
    errors = Console(stderr=True)
    errors.print(f"bench {name}, seed {given['seed']}", highlight=False)
    results, stopped = _measure(lambda watch: run(given, watch), file, errors)
    if to_stdout:
        click.echo(json.dumps(None if results is None else results.as_json(), indent=1))
    elif results is not None:
        Console().print(view(results))
    if stopped:
        errors.print("stopped; these are the figures so far", highlight=False)
    return 0


def _measure(
    run: Callable[[_Watch], Iterator[_Results]], file: Path | None, errors: Console
) -> tuple[_Results | None, bool]:
    """Measure until done or interrupted, writing the figures so far as they come; tell whether it was stopped."""
    results: _Results | None = None
    with _Teller(errors) as teller, terminated_as_interrupt():
        try:
            for results in run(teller.on):
                if file is not None:
                    file.write_text(json.dumps(results.as_json(), indent=1), "utf-8")
        except KeyboardInterrupt:
            return results, True
    return results, False


def _writable(out: Path) -> None:
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.touch()
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror}; choose another --json") from None


class _Teller:
    """Shows what is being measured: a line that changes on a terminal, elsewhere one every few seconds.

    There is no refresh thread, because workers are forked meanwhile. A context manager.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None
        self._what = ""
        self._told = 0.0

    def __enter__(self) -> "_Teller":
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
        if what == self._what and done < total and now - self._told < pause:
            return
        self._what, self._told = what, now
        line = Text(f"{what}: {done:,} of {total:,}")
        if self._live:
            self._live.update(line, refresh=True)
        else:
            self._console.print(line, soft_wrap=True)
