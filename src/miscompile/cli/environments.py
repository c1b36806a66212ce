"""Preparation of a target, for the verbs that start a campaign."""

import click

from miscompile.environments.resolve import prepare


def tell(text: str) -> None:
    """Print a line of progress to stderr."""
    click.echo(text, err=True)


def ready(target: str, *, install: bool = False) -> str:
    """Make sure that `target` can run, and make its environment if needed; return the spec to run.

    A version in the spec is consent to install it, `install` is consent for a name without version. Raises
    UsageError that says what can be done.
    """
    return prepare(target, tell, install=install)
