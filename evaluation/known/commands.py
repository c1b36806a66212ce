"""Campaigns on releases with public bugs, on the command line."""

from pathlib import Path

import click

from evaluation.measuring import chosen, measured
from evaluation.options import FIXED_SEED, JSON, WORKERS, with_options
from miscompile.cli import values


@click.command("known", short_help="Which public bugs, since mended, campaigns on the releases before find.")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@with_options(
    click.option("--target", default="onnxruntime", show_default=True, metavar="NAME", help="The compiler."),
    click.option("--releases", callback=values.names, metavar="NAMES",
                 help="Only these releases, as in 1.20.1,1.24.4. [default: all that are listed]"),
    click.option("--seconds", type=click.FloatRange(0, min_open=True), default=3600.0, show_default=True,
                 metavar="SECONDS", help="Time of each campaign."),
    FIXED_SEED, WORKERS, JSON,
)  # fmt: skip
def known(
    folder: Path,
    target: str,
    releases: tuple[str, ...],
    seconds: float,
    seed: int,
    workers: int | None,
    out: Path | None,
) -> int:
    """Run an unattended campaign on every release in evaluation/known/bugs.toml, and look for its bugs.

    A finding is a candidate for a bug if its script shows it in that release and not in the one that mends the bug, and
    if its program has the operators of the bug's trigger. Somebody has to read the candidates.

    Campaigns are kept in FOLDER, and not run again. Releases are installed in environments of their own.

    \b
    Example:
      python -m evaluation known campaigns --releases 1.24.4 --seconds 600 --workers 1
    """
    from evaluation.known.campaigns import KnownSettings, run
    from evaluation.known.listed import listed, of
    from evaluation.known.view import known_view
    from miscompile.base.errors import UsageError

    bugs = tuple(of(listed(), target, releases))
    if not bugs:
        raise UsageError(f"no bug of {target} is listed" + (f" for {', '.join(releases)}" if releases else ""))
    lanes = int(chosen({"seed": seed, "workers": workers})["workers"])
    settings = KnownSettings(folder, bugs, seconds, seed, lanes)
    return measured("known", seed, out, lambda watch: run(settings), known_view)
