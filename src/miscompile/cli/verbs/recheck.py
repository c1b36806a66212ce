"""`miscompile recheck`: the scripts of all findings on another release."""

import json
from pathlib import Path

import click
from rich.console import Console, Group
from rich.text import Text

from miscompile.api.plans import cpus, default_out
from miscompile.base.wording import counted
from miscompile.cli.exit_codes import FINDINGS, NOTHING, UNTESTED
from miscompile.cli.ledgers import ledger_option, ledger_place
from miscompile.cli.options import json_option, phases, ready
from miscompile.cli.screens import Verb
from miscompile.cli.verbosity import Verbosity, tell, verbosity, verbosity_options
from miscompile.core.events import WorkPhase
from miscompile.engine.recheck import ANSWERS, Recheck, Rechecked, entered, recheck, worst_first
from miscompile.findings.ledger import Ledger
from miscompile.findings.store import Store
from miscompile.reports.tables import plain_table
from miscompile.targets.registry import parse_target

_STYLES = {"still there": "red", "changed": "yellow", "fixed": "green"}


@click.command("recheck", cls=Verb, usual=("--target", "--install", "--close", "--ledger", "--json"))
@click.argument("out", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="[OUT]", required=False)
@click.option("--target", required=True, metavar="TARGET", help="The release, as in onnxruntime==1.33.0.")
@click.option("--install", is_flag=True, help="Install the compiler in an environment of its own if it is not here.")
@click.option("--workers", type=click.IntRange(1, 1024), metavar="N", help="Scripts at a time. [default: the CPUs]")
@click.option("--limit-seconds", type=click.FloatRange(0, min_open=True), default=60.0, show_default=True,
              metavar="SECONDS", help="Give a script up after this long.")  # fmt: skip
@click.option("--close", is_flag=True, help="Close bugs that are fixed in the ledger, as fixed in this release.")
@ledger_option
@verbosity_options
@json_option
def command(
    out: Path | None, target: str, install: bool, workers: int | None, limit_seconds: float, close: bool,
    ledger: Path | None, as_json: bool,
) -> int:  # fmt: skip
    """Run the script of every finding in OUT on TARGET: is it fixed, still there, or changed?

    \b
    Examples:
      miscompile recheck --target onnxruntime==1.33.0
      miscompile recheck nightly --target onnxruntime==1.33.0 --close --json
    \f
    OUT is the last miscompile-out[-N] here, unless it is named. A finding is fixed when two runs of its script in
    a row do not show it. It is changed when the script fails in another way, or cannot run. The ledger then knows the
    last release in which each bug was seen. A bug that the ledger has as fixed, and that is still there, is a
    regression.

    Exit code 1 when a finding is still there, 0 when none is, 4 when no script was run.
    """
    parse_target(target)
    place = out or default_out(resume=True)
    with Store.open(place, create=False):
        pass  # raises without a campaign, before anything is installed
    spec = ready(target, install=install)
    with phases(as_json=as_json) as on_phase:

        def on_answer(one: Rechecked, done: int, total: int) -> None:
            if verbosity(as_json=as_json) == Verbosity.VERBOSE:
                tell(f"{one.identifier}: {one.answer}")
            on_phase(WorkPhase("running the scripts of the findings", done, total))

        found, stored = recheck(place, spec, workers or cpus(), limit_seconds, on_answer)
    with Store.open(place, create=False) as store, Ledger.open(ledger_place(ledger, place)) as book:
        found = entered(found, stored, store, book, close=close)
    if as_json:
        click.echo(json.dumps(found.as_json(), indent=2))
    else:
        Console().print(_view(found))
    if not found.answers:
        return UNTESTED
    return FINDINGS if found.count("still there") else NOTHING


def _view(found: Recheck) -> Group:
    table = plain_table("finding", "answer", "signature, and reason")
    for one in worst_first(found.answers):
        told = f"{one.answer}, a regression" if one.regression else one.answer
        about = f"{one.signature}: {one.reason}" if one.reason else one.signature
        table.add_row(one.identifier, Text(told, style=_STYLES[one.answer]), Text(about))
    counts = ", ".join(f"{found.count(name)} {name}" for name in ANSWERS)
    lines = [f"{found.target} ({found.release}): {counts}" + (f", {len(found.skipped)} skipped" * bool(found.skipped))]
    if not found.answers:
        lines.append("Nothing was tested: no finding here has a script for this target.")
    closed, fixed = sum(one.closed for one in found.answers), found.count("fixed")
    if closed:
        lines.append(f"{counted(closed, 'bug')} closed in the ledger, as fixed in {found.release}")
    elif fixed:
        lines.append("`--close` closes the fixed bugs, `miscompile bugs close SIG --fixed-in V` one of them")
    return Group(table, *map(Text, lines))
