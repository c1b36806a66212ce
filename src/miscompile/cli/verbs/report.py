"""`miscompile report`: reports of a campaign, from what it stored."""

import json
from pathlib import Path

import click

from miscompile.cli.single import json_option, out_argument
from miscompile.findings.store import Store
from miscompile.reports.registry import REPORTS


@click.command("report", short_help="Write reports of a campaign.")
@out_argument
@click.argument("names", nargs=-1, metavar="[NAME]...")
@json_option
def command(out: Path, names: tuple[str, ...], as_json: bool) -> int:
    """Write the reports NAME of the campaign in OUT, and print the files; without NAME, list the reports there are.

    `summary` and `issues` come along; other packages add theirs through the entry points miscompile.reports.

    \b
    Examples:
      miscompile report miscompile-out
      miscompile report miscompile-out summary issues
    """
    if not names:
        titles = {name: REPORTS.get(name).title for name in REPORTS.usable()} | REPORTS.broken()
        click.echo(json.dumps(titles, indent=2) if as_json else "\n".join(map("  ".join, titles.items())))
        return 0
    reports = [REPORTS.get(name) for name in names]
    with Store.open(out, create=False) as store:
        written = {report.name: [str(path) for path in report.write(store, out)] for report in reports}
    click.echo(
        json.dumps(written, indent=2) if as_json else "\n".join(path for paths in written.values() for path in paths)
    )
    return 0
