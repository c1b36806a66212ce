"""The tables of POLYJUICE on the command line."""

from pathlib import Path
from typing import Any

import click

from evaluation.measuring import measured_at_once
from evaluation.options import FIXED_SEED, JSON, TARGETS, count, with_options
from miscompile.cli.options import ready


@click.command("polyjuice-sequences", short_help="POLYJUICE, section 5.4, table 4: passes on the extreme programs.")
@with_options(
    TARGETS,
    count("--graphs", 500, "Graphs for each target."),
    count("--nodes", 10, "Operators of a graph.", most=1000),
    count("--layers", 2, "Layers of the most complex program."),
    click.option("--disabled", default="", metavar="NAMES", help="Passes to switch off, joined with commas."),
    FIXED_SEED, JSON,
)  # fmt: skip
def sequences(targets: tuple[str, ...], out: Path | None, **given: Any) -> int:  # noqa: ANN401
    """Compare the passes that run on the simplest and the most complex program with those on two random ones.

    \b
    Example:
      python -m evaluation polyjuice-sequences --targets onnxruntime --graphs 100
    """
    from evaluation.polyjuice.sequences import SequenceSettings, measure, table

    settings = SequenceSettings(**given)
    present = [ready(target) for target in targets]
    return measured_at_once(
        out,
        lambda: {target: measure(target, settings) for target in present},
        lambda found: table(found, settings),
    )


@click.command("polyjuice-overhead", short_help="POLYJUICE, table 5: milliseconds of rewriting and of extraction.")
@with_options(
    count("--graphs", 200, "Graphs of each size."),
    count("--layers", 2, "Layers of the most complex program."),
    count("--rounds", 2, "Rounds of saturation."),
    click.option("--structural", type=float, metavar="NUMBER",
                 help="Structural rules for each value. [default: as in a campaign]"),
    count("--terms", 2000, "Limit on the terms of an e-graph."),
    click.option("--groups", default="", metavar="NAMES",
                 help="Rules or groups of rules, joined with +. [default: all]"),
    click.option("--share", type=click.FloatRange(0, 1), metavar="SHARE",
                 help="Share of the groups for each graph. [default: as in a campaign; 1 with --groups]"),
    FIXED_SEED, JSON,
)  # fmt: skip
def overhead(out: Path | None, **given: Any) -> int:  # noqa: ANN401 - click passes options by name
    """Measure the CPU milliseconds of equality saturation and of both extractions.

    \b
    Example:
      python -m evaluation polyjuice-overhead --graphs 50
    """
    from evaluation.polyjuice.overhead import figures, table

    return measured_at_once(out, lambda: figures(**given), table)
