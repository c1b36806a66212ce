"""The part that `fuzz` and `check` share: running and showing a campaign, and the options that both take."""

import json
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import click
from rich.console import Console

from miscompile.api import campaigns
from miscompile.api.campaigns import CampaignRun
from miscompile.cli import values
from miscompile.cli.exit_codes import code_of
from miscompile.cli.live import LiveDisplay, terminal_may_close
from miscompile.cli.verbosity import Verbosity, tell, verbosity, verbosity_options, warn
from miscompile.engine.plan import Plan
from miscompile.reports.summary import Summary, summary_view

if TYPE_CHECKING:
    from miscompile.migration.plan import MigrationPlan

Function = TypeVar("Function", bound=Callable[..., object])

_OUT = click.Path(path_type=Path)
CAMPAIGN_SECTIONS = {
    "Limits": ("--time", "--triage-time", "--tests", "--workers", "--limit-seconds", "--limit-memory", "--limit-disk"),
    "What is kept": ("--out", "--resume", "--join", "--ledger", "--json"),
    "What is checked": ("--check", "--transform", "--compare", "--keep-passes", "--device"),
}
"""The options of a campaign by heading; `fuzz` and `check` have each a few of their own among them."""
_CAMPAIGN = (
    click.option("--time", "seconds", metavar="TIME", callback=values.duration,
                 help="Stop after 90, 5m, 2h, ...; 0: go on until stopped."
                 " [default: 5m (`check`: 1m), or none with --tests and --producer pairs]"),
    click.option("--triage-time", "triage_seconds", metavar="TIME", callback=values.duration,
                 help="Reduce findings for at most this long after the tests; the rest waits for --resume."
                 " [default: half of --time, 2m to 10m]"),
    click.option("--tests", type=click.IntRange(min=1), metavar="N", help="Stop after N tests."),
    click.option("--seed", type=click.IntRange(0, 2**63 - 1), metavar="N",
                 help="Seed of every random choice. [default: a new one, which is printed]"),
    click.option("--out", type=_OUT, metavar="DIR",
                 help="Folder for the findings. [default: miscompile-out, or the next free miscompile-out-2, ...]"),
    click.option("--workers", type=click.IntRange(1, 1024), metavar="N", help="Lanes. [default: one for each CPU]"),
    click.option("--compare", type=click.Choice(["strict", "fixed"]), default="strict", show_default=True,
                 help="strict: the strictest rule that applies to each output; fixed: the literature's 1e-3."),
    click.option("--limit-seconds", type=click.FloatRange(0, min_open=True), default=30.0, show_default=True,
                 metavar="SECONDS", help="A single run that takes longer is a hang."),
    click.option("--limit-memory", metavar="SIZE", callback=values.size,
                 help="Memory of one worker, such as 2G. [default: chosen for the target]"),
    click.option("--limit-disk", metavar="SIZE", callback=values.size,
                 help="Stop when the folder of the campaign is larger, such as 20G. [default: no limit]"),
    click.option("--transform", "--form", "transforms", multiple=True, metavar="SPEC", callback=values.specs,
                 help="Test programs under this transform as well, as in resist{classes=fusion}; can be repeated."),
    click.option("--install", is_flag=True,
                 help="Install the compiler in an environment of its own when it is not here."),
    click.option("--keep-passes", is_flag=True, help="Test everything everywhere, known bugs as well."),
    click.option("--ledger", type=click.Path(dir_okay=False), metavar="FILE",
                 help="The ledger of known bugs, which campaigns may share. [default: ledger.db in --out]"),
    click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON, and no progress."),
)  # fmt: skip


def campaign_options(function: Function) -> Function:
    """Decorate a verb with the options of every campaign."""
    for option in reversed(_CAMPAIGN):
        function = option(function)
    return verbosity_options(function)


def conduct(
    options: "Plan | MigrationPlan",
    run: CampaignRun,
    head: str,
    *,
    as_json: bool,
    more: Callable[[], Mapping[str, Any]] = dict,
) -> int:
    """Run a campaign with a display, write its summary and issues, print it; return the exit code.

    `head` says what the campaign is; it is printed when the first test begins. `more` gives what JSON has beside the
    summary. Raises KeyboardInterrupt when the interrupt came before the campaign was stored.
    """
    level = verbosity(as_json=as_json)
    display = LiveDisplay(Console(stderr=True), options.seconds, options.tests, level, head)
    with display as live, terminated_as_interrupt():
        end = campaigns.conduct(options.out, run, [live])
    with terminal_may_close():
        show(end.summary, options.out, as_json=as_json, more=more)
        for problem in end.problems:
            warn(problem)
        if end.stopped:
            tell("stopped" if options.model else "stopped; continue with --resume", as_json=as_json)
    return code_of(end.summary)


def show(summary: Summary, out: Path, *, as_json: bool, more: Callable[[], Mapping[str, Any]] = dict) -> None:
    """Print a summary to stdout, for programs or for people."""
    if as_json:
        click.echo(json.dumps({**summary.as_json(), **more()}, indent=2))
    else:
        level = verbosity()
        full, brief = level == Verbosity.VERBOSE, level == Verbosity.QUIET
        Console().print(summary_view(summary, out, full=full, brief=brief))


@contextmanager
def terminated_as_interrupt() -> Iterator[None]:
    """Treat SIGTERM and SIGHUP like Ctrl-C inside this block.

    So a CI job's time limit and a closed terminal keep what was found. Only the first signal counts, because a terminal
    that closes sends several, and the second would interrupt the writing. SIGHUP stays ignored under `nohup`.
    """
    told = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal told
        del number, frame
        if not told:
            told = True
            raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number, handler in before.items():
        if handler != signal.SIG_IGN:
            signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
