"""The verb `help`: the same as `--help` behind a verb, as people try it."""

import click

from miscompile.base.errors import UsageError
from miscompile.cli.exit_codes import NOTHING
from miscompile.cli.screens import Verb


@click.command("help", cls=Verb)
@click.argument("verb", required=False, metavar="[VERB]")
@click.pass_context
def command(context: click.Context, verb: str | None) -> int:
    """Print the help of VERB, or of the whole command.

    \b
    Examples:
      miscompile help
      miscompile help fuzz
    """
    parent = context.parent
    assert parent is not None
    assert isinstance(parent.command, click.Group)
    if verb is None:
        click.echo(parent.get_help())
        return NOTHING
    found = parent.command.get_command(parent, verb)
    if found is None:
        raise UsageError(f"there is no verb '{verb}'; `miscompile help` lists them")
    with click.Context(found, info_name=verb, parent=parent) as inner:
        click.echo(found.get_help(inner))
    return NOTHING
