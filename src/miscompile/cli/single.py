"""The arguments and output that the verbs for one stored finding share."""

import json
from pathlib import Path

import click
from rich.console import Console

from miscompile.base.errors import StoreError
from miscompile.findings.store import Record, Store
from miscompile.reports.summary import findings_table, record_json
from miscompile.reports.writer import write_issue

out_argument = click.argument("out", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="OUT")
id_argument = click.argument("identifier", metavar="ID")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


def one_record(out: Path, identifier: str) -> Record:
    """Return a finding's row. Raises StoreError when OUT holds no campaign or no such finding, or it is damaged."""
    with Store.open(out, create=False) as store:
        store.load(identifier)
        for record in store.findings():
            if record.identifier == identifier:
                return record
    raise StoreError(f"'{identifier}' is not in the index of {out}; `miscompile fuzz --resume` enters it again")


def show_record(out: Path, identifier: str, *, as_json: bool) -> None:
    """Write a changed finding's issue anew and print its row."""
    write_issue(out, identifier)
    record = one_record(out, identifier)
    if as_json:
        click.echo(json.dumps(record_json(record), indent=2))
    else:
        Console().print(findings_table([record]))
