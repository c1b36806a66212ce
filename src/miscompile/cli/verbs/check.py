"""`miscompile check`: test a compiler around the user's own model."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import click

from miscompile.base.errors import UsageError
from miscompile.cli import values
from miscompile.cli.campaigns import campaign_options, conduct, cpus, validate
from miscompile.cli.environments import ready
from miscompile.cli.options import check_out, default_out, limits_of_time, new_seed
from miscompile.engine.checks import CHECKS, DEFAULT, OWN, chosen
from miscompile.engine.plan import Plan
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
@click.option(
    "--slice-nodes",
    callback=values.span,
    default="3..12",
    show_default=True,
    metavar="SPAN",
    help="Operators in a slice.",
)
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
    """Run MODEL, an ONNX file, with and without optimisation on many inputs, and keep what disagrees.

    \b
    Examples:
      miscompile check model.onnx
      miscompile check model.onnx --target onnxruntime --time 1m --out model-check
      miscompile check model.onnx --check levels,equivalence,resist,exact
      miscompile check model.onnx --target onnxruntime --target openvino
    """
    as_json = bool(given.pop("as_json"))
    options = _options(targets, given)
    validate(options)
    check_out(options.out, resume=False)
    first, *others = (ready(target, install=given["install"]) for target in options.targets)
    options = replace(options, target=first, others=tuple(others))
    if not as_json:
        click.echo(f"checking {model} on {options.title}, seed {options.seed}, findings go to {options.out}", err=True)
    from miscompile.engine.coordinator import fuzz

    around = replace(options, model=str(model))
    return conduct(options, lambda listeners: fuzz(around, listeners), as_json=as_json)


def _options(targets: tuple[str, ...], given: dict[str, Any]) -> Plan:
    compare: Literal["strict", "fixed"] = given["compare"]
    return Plan(
        targets[0],
        targets[1:],
        seconds=limits_of_time(given["seconds"], given["tests"]),
        tests=given["tests"],
        seed=new_seed() if given["seed"] is None else given["seed"],
        out=given["out"] or default_out(resume=False),
        workers=given["workers"] or cpus(),
        steer=not given["keep_passes"],
        compare=compare,
        limit_seconds=given["limit_seconds"],
        limit_memory=given["limit_memory"],
        slices=given["slices"],
        slice_nodes=given["slice_nodes"],
        transforms=given["transforms"],
        checks=_of_models(given["checks"], targets),
    )


def _of_models(checks: tuple[str, ...], targets: tuple[str, ...]) -> tuple[str, ...]:
    """Return `checks` without those that make programs of their own.

    Raises UsageError when one of these is asked for by name.
    """
    for name in checks:
        if name in OWN:
            raise UsageError(f"--check {name} makes programs of its own; it belongs to `miscompile fuzz`")
    if "all" not in checks:
        return checks
    return tuple(name for name in chosen(checks, [parse_target(target).about for target in targets]) if name not in OWN)
