"""`miscompile passes`: the passes of a compiler, the patterns that trigger them, and their combinations."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from miscompile.base.errors import UsageError
from miscompile.base.wording import counted
from miscompile.cli import values
from miscompile.cli.options import phases, ready
from miscompile.cli.screens import Verb
from miscompile.cli.verbosity import verbosity_options
from miscompile.reports.tables import PlainTable, plain_table

if TYPE_CHECKING:
    from miscompile.engine.passes import PassTable

_SHOWN = 3
"""Largest number of other passes in a row."""


@click.command("passes", cls=Verb)
@click.argument("target", required=False, metavar="[TARGET]")
@click.option(
    "--out",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Show what the campaign in this folder has counted, instead of measuring.",
)
@click.option("--time", "seconds", callback=values.duration, default="60", show_default=True, help="Measure so long.")
@click.option("--programs", type=click.IntRange(min=1), metavar="N", help="Stop after N programs.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, metavar="N")
@click.option(
    "--patterns",
    type=click.Path(exists=True, dir_okay=False, readable=True),
    metavar="FILE",
    help="Use the patterns in this file, as `miscompile harvest` makes them, as well.",
)
@verbosity_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with the whole matrix, instead of a table.")
def command(target: str | None, as_json: bool, **given: Any) -> int:  # noqa: ANN401 - click passes by name
    """List the passes of TARGET: their patterns, the programs that they changed, and which passes fired together.

    \b
    Examples:
      miscompile passes onnxruntime
      miscompile passes tvm --time 5m --json
    \f
    Patterns are put into seed graphs, and the compiler is asked which passes changed the result. `triggered` is the
    share of the programs with a pattern of a pass that the pass did change. Ctrl-C ends the measurement and shows the
    counts so far.

    \b
    Another example:
      miscompile passes --out miscompile-out      the counts of a campaign with --preset oatest
    """
    out: Path | None = given.pop("out")
    if (target is None) == (out is None):
        raise UsageError("name a TARGET to measure, or give --out DIR to see the counts of a campaign")
    from miscompile.engine.passes import counted, measured, table_of

    if out is not None:
        targets, counts = counted(out)
        tables = [table_of(one, counts) for one in targets]
    else:
        assert target is not None
        if not given["seconds"]:
            raise UsageError("--time 0 leaves no time to measure; give --time more than 0")
        target = ready(target)
        with phases(as_json=as_json) as on_phase:
            tables = [table_of(target, measured(target, on_phase=on_phase, **given))]
    if as_json:
        click.echo(json.dumps([table.as_json() for table in tables], indent=2))
        return 0
    for table in tables:
        Console().print(_table(table))
    return 0


def _table(found: "PassTable") -> PlainTable:
    title = f"{found.target}: {counted(found.programs, 'program')} watched"
    table = plain_table("pass", "combined with", numbers=("patterns", "fired", "triggered"), title=title)
    for row in found.rows:
        triggered = f"{row.woken / row.tried:.0%}" if row.tried else "-"
        others = ", ".join(list(row.combined)[:_SHOWN])
        company = f"{len(row.combined)}: {others}" if row.combined else row.reason
        table.add_row(row.name, company, str(row.patterns or "-"), f"{row.fired:,}", triggered)
    return table
