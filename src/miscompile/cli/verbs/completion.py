"""The verb `completion`: the script that completes the command in a shell."""

import click

from miscompile.cli.completion import SHELLS, script
from miscompile.cli.exit_codes import NOTHING
from miscompile.cli.screens import Verb


@click.command("completion", cls=Verb)
@click.argument("shell", type=click.Choice(SHELLS), metavar="SHELL")
@click.pass_context
def command(context: click.Context, shell: str) -> int:
    """Print the script that lets SHELL (bash, zsh or fish) complete verbs, options, targets and findings.

    \b
    Examples:
      eval "$(miscompile completion bash)"            in ~/.bashrc
      eval "$(miscompile completion zsh)"             in ~/.zshrc
      miscompile completion fish | source             in config.fish
    """
    parent = context.parent
    assert parent is not None
    assert isinstance(parent.command, click.Group)
    click.echo(script(shell, parent.command), nl=False)
    return NOTHING
