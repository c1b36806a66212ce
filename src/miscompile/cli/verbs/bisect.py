"""`miscompile bisect`: find the passes that are to blame."""

from pathlib import Path

import click

from miscompile.cli import calls
from miscompile.cli.single import id_argument, json_option, one_record, out_argument, show_record


@click.command("bisect", short_help="Find the passes that are to blame.")
@out_argument
@id_argument
@json_option
def command(out: Path, identifier: str, as_json: bool) -> int:
    """Find the smallest set of passes that must be on for finding ID in OUT to show.

    \b
    Example:
      miscompile bisect miscompile-out wrong-0a1b2c3d4e
    """
    one_record(out, identifier)
    calls.bisect(out, identifier)
    show_record(out, identifier, as_json=as_json)
    return 0
