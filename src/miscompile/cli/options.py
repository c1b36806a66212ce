"""Command-line options that several verbs share: their checks and defaults, and the preparation of the targets."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from miscompile.base.errors import UsageError
from miscompile.cli import values
from miscompile.cli.verbosity import Verbosity, tell, verbosity
from miscompile.core.events import ProgressListener, WorkPhaseListener
from miscompile.environments.resolve import prepare
from miscompile.findings.folder import identifiers

out_argument = click.argument("out", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="OUT")


def whole_identifier(context: click.Context, parameter: click.Parameter, value: Any) -> Any:  # noqa: ANN401 - click's
    """Return the identifiers of findings for their beginnings, of which each must fit one finding in OUT only.

    A text that fits none comes back unchanged, because the verb says what there is.
    """
    del parameter
    out = context.params.get("out")
    if value is None or not isinstance(out, Path):
        return value
    names = identifiers(out)
    return _whole(value, names) if isinstance(value, str) else tuple(_whole(one, names) for one in value)


def _whole(text: str, names: Sequence[str]) -> str:
    fitting = [name for name in names if name.startswith(text)]
    if text in names or not fitting:
        return text
    if len(fitting) > 1:
        raise UsageError(f"'{text}' is the beginning of several findings: {', '.join(fitting[:6])}")
    return fitting[0]


id_argument = click.argument("identifier", metavar="ID", callback=whole_identifier)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
slice_nodes_option = click.option(
    "--slice-nodes",
    callback=values.span,
    default="3..12",
    show_default=True,
    metavar="SPAN",
    help="Operators in a slice.",
)


def progress(*, as_json: bool) -> ProgressListener:
    """Return a listener that prints lines of progress, unless only results are wanted."""
    level = verbosity(as_json=as_json)
    return (lambda _: None) if level == Verbosity.QUIET else partial(click.echo, err=True)


@contextmanager
def phases(*, as_json: bool) -> Iterator[WorkPhaseListener]:
    """Show how far a long verb is, in one changing line of a terminal or in a line every few seconds elsewhere."""
    from miscompile.cli.live import LiveDisplay

    with LiveDisplay(Console(stderr=True), level=verbosity(as_json=as_json)) as display:
        yield display.on


def ready(target: str, *, install: bool = False) -> str:
    """Make sure that `target` can run, and make its environment if needed; return the spec to run.

    A version in the spec is consent to install it, `install` is consent for a name without version. Raises
    UsageError that says what can be done.
    """
    return prepare(target, tell, install=install)
