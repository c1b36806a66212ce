"""`miscompile corpus`: real models as seeds of campaigns, out of packages, files and architectures."""

import json
from collections import Counter
from collections.abc import Sequence

import click
from rich.console import Console

from miscompile.base.wording import counted
from miscompile.cli.options import json_option, progress
from miscompile.cli.screens import VerbSet
from miscompile.cli.verbosity import verbosity_options
from miscompile.harvest.models import cache
from miscompile.harvest.models.entry import CorpusModel
from miscompile.reports.tables import PlainTable, plain_table

_SHOWN = 4


@click.group("corpus", cls=VerbSet)
def command() -> None:
    """Keep real models, from whose slices campaigns begin.

    \b
    Examples:
      miscompile corpus add onnx                 the models in this package
      miscompile corpus add silero-vad magika    those of other packages
      miscompile corpus add nets/ model.onnx     files, and all in a folder
      miscompile corpus add timm:resnet18        with random weights
      miscompile corpus list
    """


@command.command("add", short_help="Add models.")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option(
    "--model-seconds",
    type=click.FloatRange(min=1),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long a model may run to observe its values.",
)
@verbosity_options
@json_option
def add(names: tuple[str, ...], model_seconds: float, as_json: bool) -> int:
    """Add the models that each NAME stands for, and cut them into slices.

    NAME is an installed package, a file or folder, or LIBRARY:ARCHITECTURE with the library timm, torchvision,
    transformers or keras. Nothing is downloaded. A model that is in the corpus already is left as it is.
    """
    from miscompile.harvest.models.add import add as add_models

    _show(add_models(names, progress(as_json=as_json), model_seconds), as_json=as_json)
    return 0


@command.command("list", short_help="List the models.")
@json_option
def list_models(as_json: bool) -> int:
    """List the models of the corpus with their origin, size and operators, and what of them is used.

    Campaigns begin from the slices. `miscompile check` takes the whole models that the column `check` marks.
    """
    _show([one.model for one in cache.models()], as_json=as_json)
    return 0


def _show(models: Sequence[CorpusModel], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps([one.as_json() for one in models], indent=2))
        return
    if not models:
        click.echo("the corpus is empty; `miscompile corpus add onnx` fills it from the installed package onnx")
        return
    Console().print(_table(models))
    operators = Counter(op for one in models for op in one.operators)
    click.echo(
        f"{counted(len(models), 'model')} with {counted(len(operators), 'operator')},"
        f" {counted(sum(one.slices for one in models), 'slice')}, in {cache.corpus_folder()}"
    )


def _table(models: Sequence[CorpusModel]) -> PlainTable:
    shown = plain_table("model", "from", "operators", "not used", numbers=("opset", "nodes", "slices", "check"))
    for one in models:
        first = [f"{op} {count}" for op, count in list(one.operators.items())[:_SHOWN]]
        more = len(one.operators) - len(first)
        shown.add_row(
            one.name,
            one.title or one.origin,
            ", ".join(first) + (f" and {more} more" if more else ""),
            one.reason[:120],
            str(one.opset or "-"),
            str(one.nodes or "-"),
            str(one.slices),
            "yes" if one.whole else "no",
        )
    return shown
