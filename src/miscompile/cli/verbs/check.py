"""`miscompile check`: test a compiler around a model of the user or of the corpus."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from miscompile.api.campaigns import conduct as conduct_campaign
from miscompile.api.plans import check_out, check_plan
from miscompile.base.errors import MiscompileError, UsageError
from miscompile.cli import values
from miscompile.cli.campaigns import campaign_options, conduct, terminated_as_interrupt
from miscompile.cli.options import progress, ready, slice_nodes_option
from miscompile.engine.checks import CHECKS, OWN
from miscompile.engine.plan import Plan
from miscompile.reports.summary import Summary
from miscompile.reports.tables import plain_table
from miscompile.targets.registry import DEFAULT_TARGET, about, installed, target_names


@dataclass(frozen=True, slots=True)
class TargetResult:
    """The result of a model on one target; `problem` says why there is none."""

    target: str
    summary: Summary | None
    problem: str = ""


@click.command("check", short_help="A campaign around your own model.")
@click.argument("model", metavar="MODEL")
@click.option(
    "--target",
    "targets",
    multiple=True,
    default=[DEFAULT_TARGET],
    show_default=True,
    help="The compiler to hold it against; several, if repeated, are held against each other.",
)
@click.option("--all-targets", is_flag=True, help="Test the model on every compiler that is here, one after the other.")
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
    " [default: all that the compiler can be checked for]",
)
@campaign_options
def command(model: str, targets: tuple[str, ...], all_targets: bool, **given: Any) -> int:  # noqa: ANN401 - click passes options by name
    """Run MODEL, an ONNX file or a model of the corpus, in all ways that a compiler has, and keep every disagreement.

    It runs with and without optimisation on many inputs, as it is and in equivalent forms; so do its slices. It takes
    a minute for each target, triage included, unless --time or --tests says otherwise.

    \b
    Examples:
      miscompile check model.onnx
      miscompile check model.onnx --target onnxruntime --time 10m --out model-check
      miscompile check model.onnx --check levels
      miscompile check model.onnx --target onnxruntime --target openvino
      miscompile check model.onnx --all-targets --limit-memory 4G --json
      miscompile check silero-vad/data/silero_vad.onnx
    """
    path = _file_of(model)
    as_json, install = given.pop("as_json"), given.pop("install")
    if all_targets:
        return _on_all(path, given, as_json=as_json)
    options = check_plan(path, targets, given)
    check_out(options.out, resume=False)
    first, *others = (ready(target, install=install) for target in options.targets)
    options = replace(options, target=first, others=tuple(others))
    if not as_json:
        click.echo(f"checking {model} on {options.title}, seed {options.seed}, findings go to {options.out}", err=True)
    from miscompile.engine.coordinator import fuzz

    return conduct(options, lambda listeners: fuzz(options, listeners), as_json=as_json)


def _file_of(model: str) -> Path:
    """Return the ONNX file that MODEL names. Raises UsageError when there is none."""
    from miscompile.harvest.models.cache import find

    path = Path(model)
    if path.is_file():
        return path
    there = find(model)
    if there is not None and there.file.is_file():
        return there.file
    if path.is_dir():
        raise UsageError(f"'{model}' is a directory; name an ONNX file")
    why = f": {there.model.reason}" if there is not None else ""
    raise UsageError(f"'{model}' does not exist as a file, and the corpus has no such model that can be checked{why}")


def _on_all(path: Path, given: dict[str, Any], *, as_json: bool) -> int:
    """Check a model on every installed compiler; the findings of each are in a folder of its name below OUT."""
    from miscompile.producers.around import Around

    Around(path)  # raises for a broken model
    names = [name for name in target_names() if _is_here(name)]
    whole = check_plan(path, (names[0],), given)
    check_out(whole.out, resume=False)
    tell = progress(quiet=as_json)
    results = []
    for name in names:
        tell(f"checking {path.name} on {name}")
        results.append(_on_one(replace(check_plan(path, (name,), given), seed=whole.seed, out=whole.out / name)))
    data = {"model": str(path), "targets": {one.target: _result_json(one) for one in results}}
    (whole.out / "check.json").write_text(json.dumps(data, indent=1), "utf-8")
    if as_json:
        click.echo(json.dumps(data, indent=2))
    else:
        _show(results, whole.out)
    return 1 if any(one.summary is not None and one.summary.announced() for one in results) else 0


def _is_here(name: str) -> bool:
    """Tell whether a target is a compiler that is installed beside this tool and takes ONNX models."""
    face = about(name)
    return face.role == "compiler" and "onnx" in face.kinds and all(map(installed, face.distributions))


def _on_one(options: Plan) -> TargetResult:
    from miscompile.engine.coordinator import fuzz

    with terminated_as_interrupt():
        try:
            end = conduct_campaign(options.out, partial(fuzz, options))
        except MiscompileError as error:
            return TargetResult(options.target, None, " ".join(str(error).split()))
    if end.stopped:
        raise KeyboardInterrupt
    return TargetResult(options.target, end.summary)


def _result_json(one: TargetResult) -> dict[str, Any]:
    return {"problem": one.problem, **({} if one.summary is None else one.summary.as_json())}


def _show(results: Sequence[TargetResult], out: Path) -> None:
    table = plain_table("target", "result", numbers=("tests", "refused", "findings"))
    for one in results:
        if one.summary is None:
            table.add_row(one.target, one.problem[:100], "-", "-", "-")
            continue
        found = one.summary.announced()
        result = ", ".join(str(record.signature)[:60] for record in found[:3]) or "nothing found"
        refused = one.summary.unsupported + one.summary.invalid
        table.add_row(one.target, result, str(one.summary.tests), str(refused), str(len(found)))
    Console().print(table)
    click.echo(f"findings are in {out}, and all figures in {out / 'check.json'}")
