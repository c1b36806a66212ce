"""The scripts of the bugs that were found, on the command line."""

from pathlib import Path

import click

from evaluation.measuring import measured
from evaluation.options import JSON, with_options
from miscompile.cli import values


@click.command("bugs", short_help="Which bugs that were found still show, by their scripts.")
@with_options(
    click.option("--targets", callback=values.names, metavar="NAMES",
                 help="Compilers, as in onnxruntime,openvino. [default: all that are installed]"),
    click.option("--limit-seconds", type=click.FloatRange(0, min_open=True), default=120.0, show_default=True,
                 metavar="SECONDS", help="A script that takes longer is broken."),
    JSON,
)  # fmt: skip
def bugs(targets: tuple[str, ...], limit_seconds: float, out: Path | None) -> int:
    """Run the scripts that docs/bugs-found.toml names, each in a fresh process, on the compilers that are installed.

    A bug that no longer shows gets a `fixed_in` there, with the first release that has its mend.

    \b
    Example:
      python -m evaluation bugs --targets onnxruntime --json runs.json
    """
    from evaluation.bugs.page import described
    from evaluation.bugs.scripts import run_scripts
    from evaluation.bugs.view import bugs_view
    from miscompile.targets.registry import about

    wanted = {about(target).name for target in targets}
    chosen = [bug for bug in described() if not wanted or bug.target in wanted]
    return measured("bugs", None, out, lambda watch: run_scripts(chosen, limit_seconds, watch), bugs_view)
