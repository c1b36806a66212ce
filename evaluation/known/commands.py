"""Campaigns on releases with public bugs, and migrations to them, on the command line."""

from pathlib import Path

import click

from evaluation.measuring import chosen, measured
from evaluation.options import FIXED_SEED, JSON, LIMIT_SECONDS, WORKERS, with_options
from miscompile.cli import values


@click.command("known", short_help="Which public bugs, since mended, campaigns on the releases before find.")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@with_options(
    click.option("--target", default="onnxruntime", show_default=True, metavar="NAME", help="The compiler."),
    click.option("--releases", callback=values.names, metavar="NAMES",
                 help="Only these releases, as in 1.20.1,1.24.4. [default: all that are listed]"),
    click.option("--seconds", type=click.FloatRange(0, min_open=True), default=3600.0, show_default=True,
                 metavar="SECONDS", help="Time of each campaign."),
    click.option("--focused", is_flag=True,
                 help="A campaign for each bug, with the operators of its trigger alone, not one for each release."),
    FIXED_SEED, WORKERS, JSON,
)  # fmt: skip
def known(
    folder: Path,
    target: str,
    releases: tuple[str, ...],
    seconds: float,
    focused: bool,
    seed: int,
    workers: int | None,
    out: Path | None,
) -> int:
    """Run an unattended campaign on every release in evaluation/known/bugs.toml, and look for its bugs.

    A finding is a candidate for a bug if its script shows it in that release and not in the one that mends the bug, and
    if its program has the operators of the bug's trigger. Somebody has to read the candidates.

    With --focused a bug that stays unfound is beyond the generator or the checks, and not only rare.

    Campaigns are kept in FOLDER, and not run again. Releases are installed in environments of their own.

    \b
    Example:
      python -m evaluation known campaigns --releases 1.24.4 --seconds 600 --workers 1
    """
    from evaluation.known.campaigns import KnownSettings, run, with_operators
    from evaluation.known.listed import listed, of
    from evaluation.known.view import known_view
    from miscompile.base.errors import UsageError

    bugs = tuple(of(with_operators(listed()) if focused else listed(), target, releases))
    if not bugs:
        raise UsageError(f"no bug of {target} is listed" + (f" for {', '.join(releases)}" if releases else ""))
    lanes = int(chosen({"seed": seed, "workers": workers})["workers"])
    settings = KnownSettings(folder, bugs, seconds, seed, lanes, focused)
    return measured("known", seed, out, lambda watch: run(settings), known_view)


@click.command("known-operators", short_help="Which mended public bugs of one operator migrated instances find.")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.argument("archives", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@with_options(
    click.option("--targets", callback=values.names, default="onnxruntime,openvino,tvm", show_default=True,
                 metavar="NAMES", help="The compilers."),
    click.option("--releases", callback=values.names, metavar="NAMES",
                 help="Only these releases, as in 1.20.1,2025.2.0. [default: all that are listed]"),
    LIMIT_SECONDS, WORKERS, JSON,
)  # fmt: skip
def operators(
    folder: Path,
    archives: tuple[Path, ...],
    targets: tuple[str, ...],
    releases: tuple[str, ...],
    limit_seconds: float,
    workers: int | None,
    out: Path | None,
) -> int:
    """Migrate the instances in ARCHIVES to every release in evaluation/known/bugs.toml that has a bug of one operator.

    Only instances of the bug's operator run. One is a candidate if it fails in that release and passes in the one that
    mends the bug. Somebody has to read the candidates.

    Results are kept in FOLDER, and not run again. Releases are installed in environments of their own.

    \b
    Example:
      miscompile harvest onnx --out tests.jsonl.gz
      miscompile harvest onnx --kind neighbours --out near.jsonl.gz
      python -m evaluation known-operators migrated tests.jsonl.gz near.jsonl.gz --targets openvino
    """
    from evaluation.known.listed import listed, of
    from evaluation.known.migrated import MigrationSettings, of_one_operator, run
    from evaluation.known.view import migrated_view
    from miscompile.base.errors import UsageError

    bugs = tuple(of_one_operator([bug for target in targets for bug in of(listed(), target, releases)]))
    if not bugs:
        raise UsageError(f"no bug of one operator is listed for {', '.join((*targets, *releases))}")
    named = tuple((file.name.partition(".")[0], file) for file in archives)
    lanes = int(chosen({"seed": 0, "workers": workers})["workers"])
    settings = MigrationSettings(folder, bugs, named, lanes, limit_seconds)
    return measured("known-operators", None, out, lambda watch: run(settings, watch), migrated_view)
