"""The tables of ORTHRUS on the command line."""

from pathlib import Path

import click

from evaluation.measuring import measured_at_once
from evaluation.options import JSON, count, with_options


@click.command("orthrus-optbench", short_help="ORTHRUS, table II: recall and precision on OptBench's ten bugs.")
@with_options(
    count("--graphs", 300, "Generated graphs for the precision."),
    click.option("--strategies", default="where+gather", show_default=True, metavar="NAMES",
                 help="Barriers to use, joined by +."),
    JSON,
)  # fmt: skip
def optbench(graphs: int, strategies: str, out: Path | None) -> int:
    """Hold resistant twins against ten planted bugs of the toy compiler: found, and blamed on the right class.

    \b
    Example:
      python -m evaluation orthrus-optbench --graphs 50
    """
    from evaluation.orthrus.optbench import measure, table

    return measured_at_once(out, lambda: measure(graphs, strategies), table)


@click.command("orthrus-overhead", short_help="ORTHRUS, table IV: milliseconds that a resistant twin costs.")
@with_options(count("--graphs", 60, "Graphs of each size."), JSON)
def overhead(graphs: int, out: Path | None) -> int:
    """Measure the CPU milliseconds of making a resistant twin, by number of operators.

    \b
    Example:
      python -m evaluation orthrus-overhead --graphs 10
    """
    from evaluation.orthrus.overhead import measure, table

    return measured_at_once(out, lambda: measure(graphs), table)
