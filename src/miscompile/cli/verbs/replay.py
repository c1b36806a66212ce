"""`miscompile replay`: run a stored case through the tool again."""

import json
from pathlib import Path

import click

from miscompile.cli.single import id_argument, json_option, one_record, out_argument


@click.command("replay", short_help="Run a finding's case through the tool again.")
@out_argument
@id_argument
@json_option
def command(out: Path, identifier: str, as_json: bool) -> int:
    """Run the case of finding ID in OUT again, with the tool's own workers and judgement.

    \b
    Example:
      miscompile replay miscompile-out wrong-0a1b2c3d4e

    Exit code 1 when it shows, 0 when it does not.
    """
    one_record(out, identifier)
    from miscompile.engine.single import replay

    shows, message = replay(out, identifier)
    if as_json:
        click.echo(json.dumps({"id": identifier, "shows": shows, "message": message}))
    else:
        click.echo(f"{identifier} {'shows' if shows else 'does not show'}: {message}")
    return int(shows)
