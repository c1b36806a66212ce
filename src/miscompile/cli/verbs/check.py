"""`miscompile check`: test a compiler around a model of the user or of the corpus."""

import json
import time
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
from miscompile.cli.campaigns import (
    CAMPAIGN_SECTIONS,
    campaign_options,
    conduct,
    terminated_as_interrupt,
)
from miscompile.cli.exit_codes import UNTESTED, code_of, code_of_all
from miscompile.cli.options import progress, ready, slice_nodes_option
from miscompile.cli.screens import Verb
from miscompile.core.events import MODEL_JUDGED
from miscompile.engine.checks import CHECKS, OWN
from miscompile.engine.plan import Plan
from miscompile.findings.folder import writing
from miscompile.reports.summary import Summary, verdict_of
from miscompile.reports.tables import plain_table
from miscompile.targets.registry import DEFAULT_TARGET, about, installed, target_names

_NAMED = 3
"""Findings of a target in the table for people."""


@dataclass(frozen=True, slots=True)
class TargetResult:
    """The result of a model on one target; `problem` says why there is none.

    `seconds` are those of the clock, from the start of the target to the last issue text. `stopped`: the user has
    interrupted it.
    """

    target: str
    summary: Summary | None
    problem: str = ""
    seconds: float = 0.0
    stopped: bool = False

    @property
    def code(self) -> int:
        """The exit code that a check of this target alone would have."""
        return UNTESTED if self.summary is None else code_of(self.summary)


@click.command(
    "check",
    cls=Verb,
    usual=("--target", "--all-targets", "--check", "--time", "--tests", "--seed", "--out", "--json"),
    sections={"What is tested": ("--target", "--all-targets", "--slices", "--slice-nodes"), **CAMPAIGN_SECTIONS},
)
@click.argument("model", metavar="MODEL")
@click.option(
    "--target",
    "targets",
    multiple=True,
    default=[DEFAULT_TARGET],
    show_default=True,
    metavar="TARGET",
    help="The compiler to hold it against. Several, if repeated, are held against each other.",
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
    help=f"Only these checks. There are: {', '.join(name for name in CHECKS if name not in OWN)}."
    " [default: all that the compiler can be checked for]",
)
@campaign_options
def command(model: str, targets: tuple[str, ...], all_targets: bool, **given: Any) -> int:  # noqa: ANN401 - click passes options by name
    """Run MODEL, an ONNX file or a model of the corpus, in all ways that a compiler has, and keep every disagreement.

    \b
    Examples:
      miscompile check model.onnx
      miscompile check model.onnx --time 10m --out model-check
      miscompile check model.onnx --all-targets
    \f
    It runs with and without optimisation on many inputs, as it is and in equivalent forms; so do its slices. It takes
    a minute for each target, triage included, unless --time or --tests says otherwise.

    \b
    More examples:
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
    from miscompile.engine.coordinator import fuzz

    head = f"checking {model} on {options.title}, seed {options.seed}, findings go to {options.out}"
    return conduct(options, lambda listeners: fuzz(options, listeners), head, as_json=as_json)


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
    on_progress = progress(as_json=as_json)
    results: list[TargetResult] = []
    with terminated_as_interrupt():
        for name in names:
            on_progress(f"checking {path.name} on {name}")
            one = replace(check_plan(path, (name,), given), seed=whole.seed, out=whole.out / name)
            results.append(_on_one(one))
            if results[-1].stopped:
                on_progress("stopped")
                break
    data = {"model": str(path), "seed": whole.seed, "targets": {one.target: _result_json(one) for one in results}}
    with writing(whole.out / "check.json"):
        (whole.out / "check.json").write_text(json.dumps(data, indent=1), "utf-8")
    if as_json:
        click.echo(json.dumps(data, indent=2))
    else:
        _show(results, whole.out)
    return code_of_all([one.summary for one in results])


def _is_here(name: str) -> bool:
    """Tell whether a target is a compiler that is installed beside this tool and takes ONNX models."""
    face = about(name)
    return face.role == "compiler" and "onnx" in face.kinds and all(map(installed, face.distributions))


def _on_one(options: Plan) -> TargetResult:
    from miscompile.engine.coordinator import fuzz

    start = time.monotonic()
    try:
        end = conduct_campaign(options.out, partial(fuzz, options))
    except MiscompileError as error:
        return TargetResult(options.target, None, " ".join(str(error).split()))
    return TargetResult(options.target, end.summary, "", round(time.monotonic() - start, 1), end.stopped)


def _result_json(one: TargetResult) -> dict[str, Any]:
    """Return a target's result for `check.json`; `code` is the exit code of a check of that target alone."""
    told = {} if one.summary is None else one.summary.as_json()
    return {"problem": one.problem, "code": one.code, "wall_seconds": one.seconds, **told}


def _show(results: Sequence[TargetResult], out: Path) -> None:
    table = plain_table("target", "result", numbers=("tests", "judged", "whole model", "findings", "seconds"))
    for one in results:
        seconds = f"{one.seconds:.0f}"
        if one.summary is None:
            table.add_row(one.target, one.problem[:100], "-", "-", "-", "-", seconds)
            continue
        summary = one.summary
        counts = (summary.tests, summary.judged, summary.counters.get(MODEL_JUDGED, 0), len(summary.announced()))
        table.add_row(one.target, _told(summary), *map(str, counts), seconds)
    Console().print(table)
    click.echo(f"findings are in {out}, and all figures in {out / 'check.json'}")


def _told(summary: Summary) -> str:
    """Return the result of a target in one line: signatures of findings, or what was not tested."""
    found = summary.announced()
    if found:
        more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
        return ", ".join(record.signature[:60] for record in found[:_NAMED]) + more
    return verdict_of(summary)
