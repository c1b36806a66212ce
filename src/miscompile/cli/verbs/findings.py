"""`miscompile findings`: what a campaign found."""

import json
from pathlib import Path

import click

from miscompile.cli.campaigns import show
from miscompile.cli.single import one_record, out_argument
from miscompile.findings.store import Store
from miscompile.reports.summary import record_json, summarise
from miscompile.reports.writer import write_issue


@click.command("findings", short_help="What a campaign found.")
@out_argument
@click.argument("identifier", metavar="[ID]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table or text.")
def command(out: Path, identifier: str | None, as_json: bool) -> int:
    """List the findings in OUT, or print the issue text of finding ID.

    \b
    Examples:
      miscompile findings miscompile-out
      miscompile findings miscompile-out wrong-0a1b2c3d4e > issue.md

    Exit code 1 when there are findings, 0 when there are none; with ID, 0.
    """
    if identifier is None:
        with Store.open(out, create=False) as store:
            summary = summarise(store)
        show(summary, out, as_json=as_json)
        return 1 if summary.announced() else 0
    record = one_record(out, identifier)
    text = write_issue(out, identifier)
    click.echo(json.dumps({**record_json(record), "issue": text}, indent=2) if as_json else text, nl=as_json)
    return 0
