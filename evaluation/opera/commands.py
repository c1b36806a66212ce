"""The tables of OPERA on the command line."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evaluation.measures import Watch
from evaluation.measuring import chosen, measured, measured_at_once
from evaluation.options import JSON, SEED, count, with_options
from miscompile.cli import values

if TYPE_CHECKING:
    from evaluation.opera.prioritisation import OrderFigures


@click.command("opera", short_help="OPERA, table II and section V-B: orders of migrated tests.")
@click.argument(
    "folders", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="OUT..."
)
@with_options(
    click.option("--instances", multiple=True, type=click.Path(exists=True, dir_okay=False, path_type=Path),
                 metavar="FILE", help="The archives that were migrated. [default: the libraries' own tests]"),
    click.option("--orders", callback=values.names, metavar="NAMES", help="Only these orders, as in opera,random."),
    count("--repetitions", 5, "Drawings of each order."),
    click.option("--coverage", is_flag=True,
                 help="Collect the statements that tests reach, where the front end is in Python; needs coverage.py and"
                      " runs every test."),
    SEED, JSON,
)  # fmt: skip
def orders(
    folders: tuple[Path, ...], instances: tuple[Path, ...], coverage: bool, out: Path | None, **given: Any  # noqa: ANN401
) -> int:  # fmt: skip
    """Rank the tests that `miscompile migrate` has run and left in OUT, by every order.

    A migration has run all tests once; which bugs an order would have found, and when, follows from that. Only
    confirmed findings count. Figures are APFD, RAUC at 25, 50, 75 and 100 % of the tests, the cost of ranking, and the
    time until all bugs are found. The baselines (fast, total, additional, first-come) exist here alone.

    \b
    Examples:
      miscompile migrate --to tvm --from onnx,torch --order random --out m
      python -m evaluation opera m --coverage
      python -m evaluation opera m --orders opera,random --repetitions 20 --json figures.json
    """
    from evaluation.opera.migrations import MigrationFolders, subjects
    from evaluation.opera.prioritisation import OrderSettings, run
    from evaluation.opera.view import opera_view

    where = MigrationFolders(folders, instances, coverage)
    settings = OrderSettings(**chosen(given))

    def ranked(watch: Watch) -> "Iterator[OrderFigures]":
        return run(settings, subjects(where, settings.seed, lambda text: click.echo(text, err=True)), watch)

    return measured("opera", settings.seed, out, ranked, opera_view)


@click.command("opera-cost", short_help="OPERA, section V: CPU seconds that each order costs.")
@click.argument("archives", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="[FILE]...")
@click.option("--size", "sizes", multiple=True, type=click.IntRange(1), default=(1_000, 10_000, 30_000),
              show_default=True, metavar="N", help="Number of synthetic instances. Repeatable.")  # fmt: skip
@JSON
def cost(archives: tuple[Path, ...], sizes: tuple[int, ...], out: Path | None) -> int:
    """Measure the CPU seconds of each order on synthetic instances, and on those of archives.

    \b
    Example:
      python -m evaluation opera-cost onnx.jsonl.gz --size 1000
    """
    from evaluation.opera.cost import measure, table

    return measured_at_once(out, lambda: measure(sizes, archives), table)
