"""How much a verb says while it works: `-q` leaves its results, `-v` adds a line for each finding and phase.

All long verbs take both options, and ask `verbosity` what to print; `--json` is as quiet as `-q`. Results go to stdout
and all else to stderr. Errors and warnings are always printed.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., object])

_KEY = "miscompile.verbosity"


class Verbosity(IntEnum):
    """How much is printed."""

    QUIET = 0
    NORMAL = 1
    VERBOSE = 2


def verbosity_options(function: Function) -> Function:
    """Decorate a long verb with `-q` and `-v`."""
    quiet = click.option("-q", "--quiet", is_flag=True, expose_value=False, callback=_quiet,
                         help="Print nothing but results and errors.")  # fmt: skip
    verbose = click.option("-v", "--verbose", is_flag=True, expose_value=False, callback=_verbose,
                           help="Print a line for each finding and phase as well.")  # fmt: skip
    return quiet(verbose(function))


def verbosity(*, as_json: bool = False) -> Verbosity:
    """Return how much the running verb prints: by its options, and nothing beside JSON with `as_json`."""
    context = click.get_current_context(silent=True)
    if as_json:
        return Verbosity.QUIET
    return Verbosity.NORMAL if context is None else context.meta.get(_KEY, Verbosity.NORMAL)


def tell(text: str, *, as_json: bool = False) -> None:
    """Print a line of progress to stderr, unless only results are wanted."""
    if verbosity(as_json=as_json) > Verbosity.QUIET:
        click.echo(text, err=True)


def warn(text: str) -> None:
    """Print a warning to stderr, however quiet the verb is."""
    click.echo(f"miscompile: warning: {text}", err=True)


def _quiet(context: click.Context, parameter: click.Parameter, given: bool) -> None:
    _set(context, parameter, Verbosity.QUIET, given=given)


def _verbose(context: click.Context, parameter: click.Parameter, given: bool) -> None:
    _set(context, parameter, Verbosity.VERBOSE, given=given)


def _set(context: click.Context, parameter: click.Parameter, level: Verbosity, *, given: bool) -> None:
    """Note a flag of the command line. Raises click's BadParameter when the other one is there as well."""
    if not given:
        return
    if _KEY in context.meta:
        raise click.BadParameter("say one of -q and -v", context, parameter)
    context.meta[_KEY] = level
