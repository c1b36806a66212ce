"""`miscompile check`: test a compiler around the user's own model."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from miscompile.base.errors import UsageError
from miscompile.cli import values
from miscompile.cli.campaigns import campaign_options, conduct, plan_of, validate
from miscompile.cli.options import check_out, ready, slice_nodes_option
from miscompile.engine.checks import CHECKS, DEFAULT, OWN, chosen
from miscompile.targets.registry import DEFAULT_TARGET, parse_target


@click.command("check", short_help="A campaign around your own model.")
@click.argument("model", type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path))
@click.option(
    "--target",
    "targets",
    multiple=True,
    default=[DEFAULT_TARGET],
    show_default=True,
    help="The compiler to hold it against; several, if repeated, are held against each other.",
)
@click.option(
    "--slices/--no-slices",
    default=True,
    show_default=True,
    help="Test slices of the model as well, extended and in other settings.",
)
@slice_nodes_option
@click.option(
    "--check",
    "checks",
    callback=values.names,
    metavar="NAMES",
    help=f"What to check: {', '.join(name for name in CHECKS if name not in OWN)}, or all."
    f" [default: {', '.join(DEFAULT)}]",
)
@campaign_options
def command(model: Path, targets: tuple[str, ...], **given: Any) -> int:  # noqa: ANN401 - click passes options by name
    """Run MODEL, an ONNX file, with and without optimisation on many inputs, and keep every disagreement.

    \b
    Examples:
      miscompile check model.onnx
      miscompile check model.onnx --target onnxruntime --time 1m --out model-check
      miscompile check model.onnx --check levels,equivalence,resist,exact
      miscompile check model.onnx --target onnxruntime --target openvino
    """
    as_json, install = given.pop("as_json"), given.pop("install")
    options = plan_of(targets, {**given, "checks": _of_models(given["checks"], targets)})
    validate(options)
    check_out(options.out, resume=False)
    first, *others = (ready(target, install=install) for target in options.targets)
    options = replace(options, target=first, others=tuple(others))
    if not as_json:
        click.echo(f"checking {model} on {options.title}, seed {options.seed}, findings go to {options.out}", err=True)
    from miscompile.engine.coordinator import fuzz

    around = replace(options, model=str(model))
    return conduct(options, lambda listeners: fuzz(around, listeners), as_json=as_json)


def _of_models(checks: tuple[str, ...], targets: tuple[str, ...]) -> tuple[str, ...]:
    """Return `checks` without those that make programs of their own.

    Raises UsageError when the user names one of these.
    """
    for name in checks:
        if name in OWN:
            raise UsageError(f"--check {name} makes programs of its own; it belongs to `miscompile fuzz`")
    if "all" not in checks:
        return checks
    return tuple(name for name in chosen(checks, [parse_target(target).about for target in targets]) if name not in OWN)
