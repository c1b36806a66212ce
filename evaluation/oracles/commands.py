"""The table of checks, or of techniques, on the command line."""

from pathlib import Path
from typing import Any

import click

from evaluation.measuring import chosen, measured
from evaluation.options import FIXED_SEED, JSON, TARGETS, WORKERS, count, with_options
from miscompile.cli import values


@click.command("oracles", short_help="What each check or technique finds on a compiler, and what no other one finds.")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@with_options(
    TARGETS,
    click.option("--checks", callback=values.names, default="levels,special,state", show_default=True, metavar="NAMES",
                 help="Checks to compare; `miscompile fuzz --help-all` lists them."),
    click.option("--techniques", callback=values.names, metavar="NAMES",
                 help="Compare these techniques of generation instead, as in motifs,mined; each with all of --checks."),
    click.option("--seconds", type=click.FloatRange(0, min_open=True), default=600.0, show_default=True,
                 metavar="SECONDS", help="Time of each campaign."),
    count("--tests", None, "Most tests of each campaign."),
    FIXED_SEED, WORKERS, JSON,
)  # fmt: skip
def oracles(folder: Path, out: Path | None, **given: Any) -> int:  # noqa: ANN401 - click passes options by name
    """Run a campaign for every target and check, and count the confirmed classes that no other check finds.

    With --techniques the campaigns differ in how programs are generated instead. The table tells as well how many
    classes each campaign met no later than the others.

    The campaigns are kept in FOLDER/TARGET/NAME. One that has ended is not run again, so the table can be made anew
    after somebody has written `verdict.toml` beside findings.

    \b
    Example:
      python -m evaluation oracles campaigns --targets onnxruntime,openvino --checks levels,memory --workers 1
      python -m evaluation oracles yields --techniques everyday,generation,motifs --checks levels,exact,resist
    """
    from evaluation.oracles.campaigns import OracleSettings, run
    from evaluation.oracles.view import oracles_view

    settings = OracleSettings(folder, **chosen(given))
    return measured("oracles", settings.seed, out, lambda watch: run(settings), oracles_view)
