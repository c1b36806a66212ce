"""Command-line options that several verbs share: their checks and defaults, and the preparation of the targets."""

import itertools
import os
import secrets
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from miscompile.base.dtypes import PLAIN
from miscompile.base.errors import UsageError
from miscompile.cli import values
from miscompile.cli.verbosity import Verbosity, tell, verbosity
from miscompile.core.events import ProgressListener, WorkPhaseListener
from miscompile.engine.plan import Plan
from miscompile.environments.resolve import prepare
from miscompile.findings.folder import identifiers
from miscompile.findings.store import holds_campaign

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

DEFAULT_SECONDS = 300.0
DEFAULT_OUT = Path("miscompile-out")
MIN_OPSET = 13


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


def limits_of_time(seconds: float | None, tests: int | None) -> float | None:
    """Return the time limit in seconds: five minutes by default, none for 0 or when only tests are limited."""
    if seconds is None:
        return DEFAULT_SECONDS if tests is None else None
    return seconds or None


def default_out(*, resume: bool) -> Path:
    """Return the folder of a campaign that names none: the first free `miscompile-out[-N]`, to resume the last used."""
    last = DEFAULT_OUT
    for number in itertools.count(2):
        following = DEFAULT_OUT.with_name(f"{DEFAULT_OUT.name}-{number}")
        if not last.exists() or (resume and not following.exists()):
            return last
        last = following
    raise AssertionError("counting does not end")


def new_seed() -> int:
    """Return a seed from the operating system's entropy."""
    return secrets.randbits(32)


def check_generation(options: Plan) -> None:
    """Raise UsageError for an unknown operator, dtype or opset in `options`."""
    from miscompile.ops.registry import specs
    from miscompile.producers.control.forms import FEATURES
    from miscompile.targets.registry import parse_target

    _known("operator", options.ops, {*specs(), *FEATURES}, "`miscompile targets --matrix` lists them")
    _known("dtype", options.dtypes, PLAIN, f"there are: {', '.join(PLAIN)}")
    highest = min(parse_target(target).about.max_opset for target in options.targets)
    if options.opset is not None and not MIN_OPSET <= options.opset <= highest:
        raise UsageError(f"--opset {options.opset}: {options.title} is tested with opsets {MIN_OPSET} to {highest}")


def check_out(out: Path, *, resume: bool, join: bool = False) -> None:
    """Raise UsageError unless OUT can be written and is new, or holds a campaign to resume or to join."""
    holds = holds_campaign(out)
    if join and not holds:
        raise UsageError(f"there is no campaign in {out} to join; leave --join out to start one")
    if resume and not holds:
        raise UsageError(f"there is no campaign in {out} to resume; leave --resume out to start one")
    place = next(one for one in (out.absolute(), *out.absolute().parents) if one.exists())
    if not place.is_dir():
        raise UsageError(f"{place} is a file; choose another --out")
    if not os.access(place, os.W_OK):
        raise UsageError(f"{place} cannot be written; choose another --out")
    if holds and not resume and not join:
        raise UsageError(f"{out} already holds a campaign; continue it with --resume or choose another --out")
    if not (resume or join) and out.is_dir() and any(out.iterdir()):
        raise UsageError(f"{out} is not empty and holds no campaign; choose another --out")


def _known(what: str, names: Collection[str], known: Collection[str], hint: str) -> None:
    lower = {name.lower(): name for name in known}
    for name in names:
        if name not in known:
            meant = lower.get(name.lower())
            raise UsageError(f"there is no {what} '{name}'; " + (f"did you mean {meant}?" if meant else hint))
