"""`miscompile harvest`: patterns out of a compiler's own tests, or out of a folder of models."""

import json
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from miscompile.base.errors import UsageError
from miscompile.cli import values
from miscompile.cli.environments import ready
from miscompile.targets.registry import load_attribute, parse_target

_TVM = "tvm"
_SOURCES = ("onnxruntime", "onnxscript", "inductor", _TVM, "models")
_SHOWN = 12
"""Reasons that the summary names."""


@click.command("harvest", short_help="Patterns out of a compiler's tests.")
@click.argument("source", type=click.Choice(_SOURCES))
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="FILE", help="Write the patterns here.")
@click.option(
    "--on", "targets", multiple=True, metavar="TARGET", help="See what fires on TARGET.  [default: onnxruntime]"
)
@click.option(
    "--file-time", "seconds", callback=values.duration, default="5m", show_default=True, help="Limit of a test file."
)
@click.option("--each", type=click.IntRange(min=1), default=20, show_default=True, help="Most patterns of a pass.")
@click.option("--keep", type=click.Path(path_type=Path), metavar="DIR", help="Keep the models that the tests made.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, metavar="N")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def command(source: str, path: Path, out: Path, as_json: bool, **given: Any) -> int:  # noqa: ANN401 - click
    """Run the tests at PATH under a hook, and cut patterns for passes out of the models that they build.

    SOURCE says what is hooked: sessions of onnxruntime, rules and passes of onnxscript, graph passes of inductor or of
    tvm. `models` takes a folder of models whose names name passes. Which passes a model wakes is observed on every
    TARGET. tvm is given a checkout and keeps modules of its own kind: OUT is a folder then, and --on has no meaning.

    The tests run here, with all they do. Ctrl-C ends the tests and goes on with what they gave; once more ends that.

    \b
    Examples:
      miscompile harvest onnxscript onnxscript/onnxscript/rewriter --out rules.patterns
      miscompile harvest onnxruntime tests/test_fusions.py --out mine.patterns --on onnxruntime --on openvino
      miscompile harvest models my-models --out mine.patterns --json
      miscompile harvest tvm ~/tvm --out relax-patterns
    """
    say: Callable[[str], None] = _say_nothing if as_json else _say
    if source == _TVM:
        return _harvest_tvm(path, out, say, given["seconds"], as_json=as_json)
    _check_out(out)
    _check_keep(given["keep"])
    targets = tuple(dict.fromkeys(given["targets"])) or ("onnxruntime",)
    for target in targets:
        if "onnx" not in parse_target(target).about.kinds:
            raise UsageError(f"{target} takes no ONNX models; name another target with --on")
    report = _harvest(source, path, out, [ready(target) for target in targets], say, given)
    if as_json:
        click.echo(json.dumps(report, indent=2))
    else:
        _print(report)
    return 0


def _harvest(
    source: str, path: Path, out: Path, targets: list[str], say: Callable[[str], None], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Gather, extract and write; return all figures as JSON values."""
    with ExitStack() as stack:
        keep = given["keep"]
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="miscompile-")) if keep is None else keep)
        gathered = load_attribute("miscompile.mining.gather:gather")(source, path, folder, given["seconds"], say)
        if gathered.stopped:
            say("stopped; going on with what the tests gave until now, Ctrl-C ends that too")
        extraction = load_attribute("miscompile.mining.harvest:Extraction")(each=given["each"], seed=given["seed"])
        found = load_attribute("miscompile.mining.harvest:extract")(gathered.pairs, targets, source, extraction, say)
    load_attribute("miscompile.patterns.library:write_library")(found.patterns, out)
    return {
        "source": source,
        "path": str(path),
        "out": str(out),
        "stopped": gathered.stopped or found.stopped,
        "files": dict(gathered.sources),
        "tests": dict(gathered.tests),
        "pairs": len(gathered.pairs),
        "named": dict(Counter(pair.named for pair in gathered.pairs if pair.named).most_common()),
        "models": found.models,
        "pieces": found.pieces,
        "patterns": len(found.patterns),
        "granularity": dict(Counter(pattern.granularity for pattern in found.patterns)),
        "abstract": sum(pattern.motif is not None for pattern in found.patterns),
        "passes": [
            {"target": target, "pass": name, "block": counts["block"], "subgraph": counts["subgraph"],
             "pieces": found.seen[target, name]}
            for (target, name), counts in sorted(found.counts().items())
        ],
        "left": dict((gathered.left + found.left).most_common()),
        "notes": gathered.notes,
    }  # fmt: skip


def _check_out(out: Path) -> None:
    """Raise UsageError unless the file `out` can be written: hours of tests are not to end in an error."""
    if out.is_dir():
        raise UsageError(f"{out} is a folder; name a file with --out")
    probe = out.with_name(f"{out.name}.probe")
    try:
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror or error}; choose another --out") from None


def _check_keep(folder: Path | None) -> None:
    """Raise UsageError unless models can be kept in `folder`: it is new, or empty."""
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        full = any(folder.iterdir())
    except OSError as error:
        raise UsageError(f"{folder} cannot be made: {error.strerror or error}; choose another --keep") from None
    if full:
        raise UsageError(f"{folder} is not empty; choose another --keep")


def _harvest_tvm(path: Path, out: Path, say: Callable[[str], None], seconds: float, *, as_json: bool) -> int:
    """Harvest pairs of passes and Relax modules from a checkout of TVM."""
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; harvest tvm writes a folder")
    found = load_attribute("miscompile.mining.tvm_tests:harvest_tvm")(path, out, say, seconds)
    report = {
        "source": _TVM, "path": str(path), "out": str(out), "files": dict(found.files), "modules": found.modules,
        "pairs": found.pairs, "changed": found.changed, "left": dict(found.left),
        "passes": [
            {"pass": name, "pairs": pairs, "changed": changed} for name, (pairs, changed) in found.by_pass.items()
        ],
    }  # fmt: skip
    if as_json:
        click.echo(json.dumps(report, indent=2))
        return 0
    table = _table("pass", numbers=("pairs", "changed"))
    for row in report["passes"]:
        table.add_row(row["pass"], str(row["pairs"]), str(row["changed"]))
    Console().print(table)
    click.echo(f"files: {_counts(report['files'])}; {found.pairs} pairs of {found.modules} modules")
    _print_left(report["left"])
    return 0


def _print(report: Mapping[str, Any]) -> None:
    table = _table("target", "pass", numbers=("blocks", "subgraphs", "pieces that it changes"))
    for row in report["passes"]:
        table.add_row(row["target"], row["pass"], *(str(row[key]) for key in ("block", "subgraph", "pieces")))
    Console().print(table)
    click.echo(f"files: {_counts(report['files'])}; tests: {_counts(report['tests'])}")
    click.echo(
        f"{report['pairs']} pairs with {len(report['named'])} passes that the source names, {report['models']} models"
        f" in {report['pieces']} pieces"
    )
    _print_left(report["left"])
    for note in report["notes"]:
        click.echo(f"  {note}")
    stopped = " (stopped before the end)" if report["stopped"] else ""
    click.echo(
        f"{report['patterns']} patterns ({_counts(report['granularity'])}), {report['abstract']} with an abstract form,"
        f" are in {report['out']}{stopped}"
    )


def _print_left(left: Mapping[str, int]) -> None:
    if left:
        click.echo("left out:")
    for reason, count in list(left.items())[:_SHOWN]:
        click.echo(f"  {count} {reason}")
    if len(left) > _SHOWN:
        click.echo(f"  and {len(left) - _SHOWN} reasons more, which --json lists")


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {what}" for what, count in counts.items()) or "none"


def _table(*names: str, numbers: tuple[str, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        table.add_column(name, overflow="fold")
    for name in numbers:
        table.add_column(name, justify="right")
    return table


def _say(text: str) -> None:
    click.echo(text, err=True)


def _say_nothing(text: str) -> None:
    """Say nothing: whoever asks for JSON wants no lines beside it."""
