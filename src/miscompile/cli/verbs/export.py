"""`miscompile export`: operator instances as regression suites in the layout of onnx's backend tests."""

import json
from pathlib import Path
from typing import Any

import click

from miscompile.base.errors import UsageError
from miscompile.base.wording import counted
from miscompile.cli import values
from miscompile.cli.exit_codes import NOTHING, UNTESTED
from miscompile.cli.options import progress
from miscompile.cli.screens import Verb
from miscompile.cli.verbosity import verbosity_options
from miscompile.migration.layouts import LAYOUTS
from miscompile.migration.plan import DEFAULT_ORDER, ORDERS
from miscompile.targets.registry import DEFAULT_TARGET, parse_target

_SHOWN = 8


@click.command("export", cls=Verb, usual=("--suite", "--for", "--layout", "--tests", "--operators"))
@click.option(
    "--suite",
    "folder",
    type=click.Path(path_type=Path),
    required=True,
    metavar="DIR",
    help="Write a suite of single-operator models into DIR, which must be new or empty.",
)
@click.option(
    "--for",
    "target",
    default=DEFAULT_TARGET,
    show_default=True,
    metavar="TARGET",
    help="Rank for this compiler: instances that its own tests cover go last.",
)
@click.option(
    "--layout",
    type=click.Choice(LAYOUTS),
    default=LAYOUTS[0],
    show_default=True,
    help="ONNX backend tests, pytest modules of the compiler's interface, or lit tests.",
)
@click.option("--tests", type=click.IntRange(min=1), metavar="N", help="Only the first N.  [default: all]")
@click.option(
    "--order",
    type=click.Choice(ORDERS),
    default=DEFAULT_ORDER,
    show_default=True,
    help="Which tests go first.",
)
@click.option("--operators", callback=values.names, metavar="NAMES", help="Only these, as in Conv,Resize.")
@click.option(
    "--instances",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Take the operator instances in FILE. [default: those of onnx's own tests]",
)
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, metavar="N")
@verbosity_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def command(folder: Path, target: str, as_json: bool, **given: Any) -> int:  # noqa: ANN401 - click passes options by name
    """Write a ranked suite of single-operator models with inputs and expected outputs.

    Layout onnx is that of onnx's backend tests, with a file for pytest beside it. Layouts pytest and lit write tests in
    the form of the compiler's own.

    \b
    Examples:
      miscompile export --suite onnx-suite --tests 500
      miscompile export --suite iree-suite --for iree --layout lit
      cd onnx-suite && pytest --onnx-backend onnxruntime.backend
    """
    if "onnx" not in parse_target(target).about.kinds:
        raise UsageError(f"{target} takes no ONNX models; name another target with --for")
    from miscompile.migration.exporting import Choice, export

    report = export(Choice(target=target, **given), folder, progress(as_json=as_json))
    code = NOTHING if report.written else UNTESTED
    if as_json:
        data = {"folder": str(folder), "tests": report.written, "left out": dict(report.left_out.most_common())}
        click.echo(json.dumps(data, indent=2))
        return code
    written, them = counted(len(report.written), "test"), "it" if len(report.written) == 1 else "them"
    runner = "lit ." if given["layout"] == "lit" else "pytest"
    click.echo(f"{written} in {folder}; `{runner}` there runs {them}" if report.written else "no test could be written")
    for reason, count in report.left_out.most_common(_SHOWN):
        click.echo(f"  {count:,} left out: {reason}")
    return code
