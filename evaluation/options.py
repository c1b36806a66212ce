"""Options that several tables have."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from miscompile.cli import values

Decorator = Callable[[Any], Any]

SEED = click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), metavar="N",
    help="Seed of every random choice. [default: a new one, which is printed]",
)  # fmt: skip

FIXED_SEED = click.option(
    "--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, metavar="N",
    help="Seed of every random choice.",
)  # fmt: skip

WORKERS = click.option(
    "--workers", type=click.IntRange(1, 1024), metavar="N", help="Workers at a time. [default: one for each CPU]"
)

JSON = click.option(
    "--json", "out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
    help="Write all figures into FILE, anew as they come; - is stdout.",
)  # fmt: skip

TARGETS = click.option(
    "--targets", callback=values.names, default="onnxruntime", show_default=True, metavar="NAMES",
    help="Compilers to measure with, as in onnxruntime,toy.",
)  # fmt: skip

LIMIT_SECONDS = click.option(
    "--limit-seconds", type=click.FloatRange(0, min_open=True), default=30.0, show_default=True, metavar="SECONDS",
    help="A single run that takes longer is a hang.",
)  # fmt: skip

PATIENCE = click.option(
    "--patience", type=click.FloatRange(0), default=300.0, show_default=True, metavar="SECONDS",
    help="Triage of the failures of one series ends after this.",
)  # fmt: skip


def count(name: str, default: int | None, help: str, least: int = 1, most: int | None = None) -> Decorator:
    """Return an option that is a number from `least` to `most`; without a default it is None."""
    return click.option(
        name,
        type=click.IntRange(least, most),
        default=default,
        show_default=default is not None,
        metavar="N",
        help=help,
    )


def with_options(*options: Decorator) -> Decorator:
    """Return a decorator that adds `options` to a command, in this order."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate
