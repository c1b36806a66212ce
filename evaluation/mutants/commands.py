"""The self-mutation score on the command line."""

from pathlib import Path

import click

from evaluation.measuring import measured
from evaluation.options import FIXED_SEED, count, with_options
from miscompile.cli import values


@click.command("mutants", short_help="Self-mutation score: mutants of a sound optimiser that each technique finds.")
@with_options(
    click.option("--arms", default="mixture", show_default=True, metavar="NAMES", callback=values.names,
                 help="Arms to measure: `mixture`, as a campaign divides its time, or names such as generation/levels; "
                      "`techniques` stands for every technique with the check of builds, `checks` for every check."),
    click.option("--seconds", type=click.FloatRange(0, min_open=True), default=120.0, show_default=True,
                 metavar="SECONDS", help="CPU time of the campaign of each arm."),
    count("--tests", 1_000_000, "Most tests of each arm."),
    click.option("--share", type=click.FloatRange(0, 1), default=0.2, show_default=True, metavar="SHARE",
                 help="Share of the mutants, drawn by their names; 0: the sound optimiser alone."),
    click.option("--only", default="", metavar="TEXT", help="Only mutants whose name contains this."),
    click.option("--nnsmith", type=click.Path(file_okay=False, exists=True, path_type=Path), metavar="FOLDER",
                 help="Models of benchmarks/nnsmith_models.py, a further arm called nnsmith."),
    FIXED_SEED,
    click.option("--json", "out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE",
                 help="Write the figures into FILE as they come; arms that it holds are not measured again."),
    click.option("--list", "listing", is_flag=True, help="Print the chosen mutants, and measure nothing."),
)  # fmt: skip
def mutants(
    arms: tuple[str, ...], seconds: float, tests: int, share: float, only: str, nnsmith: Path | None, seed: int,
    out: Path | None, listing: bool,
) -> int:  # fmt: skip
    """Count the mutants of the toy's sound optimiser that campaigns find, and false alarms on the optimiser itself.

    \b
    Example:
      python -m evaluation mutants --arms mixture,techniques --seconds 30 --json score.json
    """
    from evaluation.mutants.measure import MutationSettings, measure
    from evaluation.mutants.selection import chosen
    from evaluation.mutants.view import view

    if listing:
        for one in chosen(share, only):
            before, after = (text.split("\n")[0] for text in (one.before, one.after))
            click.echo(f"{one.name}  line {one.line}: {before}  ->  {after}")
        return 0
    settings = MutationSettings(arms, seconds, tests, share, only, nnsmith, seed, out)
    return measured("mutants", seed, out, lambda watch: measure(settings, watch), view)
