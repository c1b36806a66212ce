"""`miscompile harvest`: patterns from compilers' tests, models or programs; instances from libraries' tests."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from rich.console import Console

from miscompile.base.errors import UsageError
from miscompile.base.wording import counted
from miscompile.cli import values
from miscompile.cli.harvesting import KINDS, harvest_library
from miscompile.cli.options import phases, progress, ready
from miscompile.cli.screens import Verb
from miscompile.cli.verbosity import verbosity_options
from miscompile.core.events import ProgressListener
from miscompile.instances.instance import LIBRARIES, Library
from miscompile.reports.tables import plain_table
from miscompile.targets.registry import DEFAULT_TARGET, parse_target

if TYPE_CHECKING:
    from miscompile.core.case import Case
    from miscompile.patterns.pattern import Pattern

_TVM, _PROGRAMS = "tvm", "programs"
_SOURCES = ("onnxruntime", "onnxscript", "inductor", _TVM, "models", _PROGRAMS, *LIBRARIES)
_SUITES = ("onnxruntime", "onnxscript", "inductor")
_CUT = (*_SUITES, "models")
"""Sources of ONNX models from which patterns are cut."""
_MEANT: Mapping[str, tuple[str, ...]] = {
    "targets": (*_CUT, _PROGRAMS), "seconds": (*_SUITES, _TVM, "torch", "keras"),
    "each": (*_CUT, _PROGRAMS, *LIBRARIES),
    "passes": (_PROGRAMS,), "limit": (_PROGRAMS,), "kind": LIBRARIES, "instances": (_PROGRAMS,), "keep": _SUITES,
    "seed": (*_CUT, _PROGRAMS, *LIBRARIES),
}  # fmt: skip
"""The sources that each option applies to."""
_EACH, _MINED = 20, 3
"""Largest number of patterns of a pass, from tests and from programs; a pattern from programs takes seconds."""
_LONG = 86_400.0
"""Seconds that stand for no limit."""
_SHOWN = 12
"""Largest number of reasons in the summary."""


@click.command("harvest", cls=Verb, usual=("--out", "--on", "--pass", "--time", "--kind"))
@click.argument("source", type=click.Choice(_SOURCES), metavar="SOURCE")
@click.argument("path", type=click.Path(path_type=Path), required=False)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write what is found here.  [needed, but for the own tests of onnx, torch and keras]",
)
@click.option(
    "--on", "targets", multiple=True, metavar="TARGET", help="See what fires on TARGET.  [default: onnxruntime]"
)
@click.option(
    "--file-time", "seconds", callback=values.duration, default="5m", show_default=True, help="Limit of a test file."
)
@click.option(
    "--each",
    type=click.IntRange(min=1),
    metavar="N",
    help=f"Most patterns of a pass, or neighbours of an operator.  [default: {_EACH}, from programs {_MINED}, 40]",
)
@click.option("--pass", "passes", multiple=True, metavar="NAME", help="Mine for this pass (programs); can be repeated.")
@click.option(
    "--time", "limit", callback=values.duration, default="5m", show_default=True, help="Mine so long (programs)."
)
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    default="tests",
    show_default=True,
    help="What instances come from (onnx, torch, keras).",
)
@click.option(
    "--instances",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Mine the operators in FILE as well (programs); can be repeated.",
)
@click.option("--keep", type=click.Path(path_type=Path), metavar="DIR", help="Keep the models that the tests made.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True, metavar="N")
@verbosity_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def command(source: str, path: Path | None, out: Path | None, as_json: bool, **given: Any) -> int:  # noqa: ANN401 - click
    """Run the tests at PATH under a hook, and extract patterns or operator instances from the calls that they make.

    SOURCE is onnxruntime, onnxscript, inductor, tvm, models, programs, onnx, torch or keras.

    \b
    Examples:
      miscompile harvest onnxruntime tests/ --out mine.patterns
      miscompile harvest programs --on openvino --out mined.patterns
      miscompile harvest torch
    \f
    SOURCE names the hook: sessions of onnxruntime, rules and passes of onnxscript, graph passes of inductor or of
    tvm. `models` takes a folder of models whose names name passes. Every TARGET compiles each model, to observe which
    passes it triggers. tvm takes a checkout and keeps Relax modules: then OUT is a folder, and --on has no meaning.
    `programs` shrinks programs for as long as a pass fires: the model at PATH or all below that folder, without PATH
    onnx's node cases and generated programs. `onnx`, `torch` and `keras` are libraries: the operators that their own
    tests call, or the tests at PATH, with all parameters, for `miscompile migrate`.

    The tests run on this machine, side effects included. Ctrl-C ends the tests and continues with the results so far.

    \b
    More examples:
      miscompile harvest onnxscript onnxscript/onnxscript/rewriter --out rules.patterns
      miscompile harvest tvm ~/tvm --out relax-patterns
      miscompile harvest programs my-model.onnx --on openvino --out mined.patterns
      miscompile harvest torch tests/test_layers.py --out mine.jsonl.gz
      miscompile harvest torch --kind constraints --out generated.jsonl.gz
      miscompile harvest onnx --kind neighbours --out neighbours.jsonl.gz
    """
    on_progress = progress(as_json=as_json)
    _check_options(source)
    if source in LIBRARIES:
        return _harvest_library(source, path, out, on_progress, given, as_json=as_json)
    given["each"] = given["each"] or (_MINED if source == _PROGRAMS else _EACH)
    if out is None:
        raise UsageError("say with --out where the patterns are to go")
    if path is None and source != _PROGRAMS:
        raise UsageError(f"harvest {source} needs a PATH to harvest from")
    if source == _TVM:
        assert path is not None
        return _harvest_tvm(path, out, on_progress, given["seconds"], as_json=as_json)
    _check_out(out)
    _check_keep(given["keep"])
    targets = tuple(dict.fromkeys(given["targets"])) or (DEFAULT_TARGET,)
    _check_passes(targets, given["passes"])
    for target in targets:
        if "onnx" not in parse_target(target).about.kinds:
            raise UsageError(f"{target} takes no ONNX models; name another target with --on")
    present = [ready(target) for target in targets]
    if source == _PROGRAMS:
        report = _mine(present, path, out, on_progress, given, as_json=as_json)
    else:
        assert path is not None
        report = _harvest(source, path, out, present, on_progress, given)
    if as_json:
        click.echo(json.dumps(report, indent=2))
    else:
        _print(report)
    return 0


def _harvest_library(
    source: Library,
    path: Path | None,
    out: Path | None,
    on_progress: ProgressListener,
    given: Mapping[str, Any],
    *,
    as_json: bool,
) -> int:
    if out is not None:
        _check_out(out)
    counts = {"count": given["each"], "seed": given["seed"]}
    return harvest_library(source, given["kind"], path, out, given["seconds"], on_progress, as_json=as_json, **counts)


def _harvest(
    source: str, path: Path, out: Path, targets: list[str], on_progress: ProgressListener, given: Mapping[str, Any]
) -> dict[str, Any]:
    """Gather, extract and write; return all figures as JSON values."""
    from miscompile.harvest.patterns.gather import gather
    from miscompile.harvest.patterns.harvest import Extraction, extract
    from miscompile.patterns.library import write_library

    with ExitStack() as stack:
        keep = given["keep"]
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="miscompile-")) if keep is None else keep)
        gathered = gather(source, path, folder, given["seconds"], on_progress)
        if gathered.stopped:
            on_progress("stopped; going on with what the tests gave until now, Ctrl-C ends that too")
        extraction = Extraction(each=given["each"], seed=given["seed"])
        found = extract(gathered.pairs, targets, source, extraction, on_progress)
    write_library(found.patterns, out)
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


def _mine(
    targets: list[str],
    path: Path | None,
    out: Path,
    on_progress: ProgressListener,
    given: Mapping[str, Any],
    *,
    as_json: bool,
) -> dict[str, Any]:
    """Mine programs for patterns of passes and write them; Ctrl-C keeps the patterns so far."""
    from miscompile.engine.coordinator import probe_support
    from miscompile.engine.plan import Plan
    from miscompile.harvest.patterns.programs import mined, of_models
    from miscompile.patterns.library import write_library

    found: list[Pattern] = []
    stopped = False
    try:
        for target in targets:
            with phases(as_json=as_json) as on_phase:
                support = probe_support(Plan(target), target, on_phase)
            limit, each, seed = given["limit"] or _LONG, given["each"], given["seed"]
            models = None if path is None else of_models(path, seed, on_progress)
            cases = _cases(given["instances"])
            found += mined(target, support, limit, given["passes"], each, seed, on_progress, cases, models)
    except KeyboardInterrupt:
        stopped = True
    write_library(found, out)
    counts = Counter((trigger.target, trigger.name, one.granularity) for one in found for trigger in one.triggers)
    return {
        "source": _PROGRAMS,
        "out": str(out),
        "stopped": stopped,
        "patterns": len(found),
        "granularity": dict(Counter(pattern.granularity for pattern in found)),
        "abstract": sum(pattern.motif is not None for pattern in found),
        "passes": [
            {"target": target, "pass": name, "block": counts[target, name, "block"],
             "subgraph": counts[target, name, "subgraph"], "pieces": 0}
            for target, name in dict.fromkeys((target, name) for target, name, _ in sorted(counts))
        ],
    }  # fmt: skip


def _cases(archives: tuple[Path, ...]) -> "list[Case]":
    """Return the programs of the ONNX instances in archives."""
    from miscompile.producers.instances.migrated import cases_of

    return list(cases_of(archives)) if archives else []


def _check_options(source: str) -> None:
    """Raise UsageError for an option on the command line that does not apply to `source`."""
    context = click.get_current_context()
    for parameter in context.command.params:
        sources = _MEANT.get(parameter.name or "", _SOURCES)
        told = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if told and source not in sources:
            raise UsageError(f"harvest {source} takes no {parameter.opts[0]}; it is for {', '.join(sources)}")


def _check_passes(targets: Sequence[str], passes: Sequence[str]) -> None:
    """Raise UsageError for a pass that no target has."""
    known = {name for target in targets for name in parse_target(target).about.passes}
    unknown = [name for name in passes if name not in known]
    if unknown:
        raise UsageError(f"there is no pass {unknown[0]} on {', '.join(targets)}; `miscompile passes` lists them")


def _check_out(out: Path) -> None:
    """Raise UsageError unless the file `out` can be written, before hours of tests are run."""
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


def _harvest_tvm(path: Path, out: Path, on_progress: ProgressListener, seconds: float, *, as_json: bool) -> int:
    """Harvest pairs of passes and Relax modules from a checkout of TVM."""
    from miscompile.harvest.patterns.tvm_tests import extract_tvm, harvest_tvm

    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; harvest tvm writes a folder")
    found = harvest_tvm(path, out, on_progress, seconds)
    if found.stopped:
        on_progress("stopped; going on with what the tests gave until now, Ctrl-C ends that too")
    if found.stopped and not found.pairs:
        raise KeyboardInterrupt  # there is nothing to go on with
    taken = extract_tvm(out, out / "library", on_progress)
    report: dict[str, Any] = {
        "source": _TVM, "path": str(path), "out": str(out), "stopped": found.stopped or taken.stopped,
        "files": dict(found.files), "modules": found.modules,
        "pairs": found.pairs, "changed": found.changed, "left": dict(found.left),
        "passes": [
            {"pass": name, "pairs": pairs, "changed": changed, "block": taken.by_pass.get((name, "block"), 0),
             "subgraph": taken.by_pass.get((name, "subgraph"), 0)}
            for name, (pairs, changed) in found.by_pass.items()
        ],
        "library": str(out / "library"), "patterns": dict(taken.patterns), "refused": dict(taken.left),
    }  # fmt: skip
    if as_json:
        click.echo(json.dumps(report, indent=2))
        return 0
    columns = ("pairs", "changed", "block", "subgraph")
    table = plain_table("pass", numbers=columns)
    for row in report["passes"]:
        table.add_row(row["pass"], *(str(row[name]) for name in columns))
    Console().print(table)
    click.echo(
        f"files: {_counts(report['files'])}; {counted(found.pairs, 'pair')} of {counted(found.modules, 'module')}"
    )
    _print_left({**report["left"], **report["refused"]})
    stopped = " (stopped before the end)" if report["stopped"] else ""
    click.echo(f"patterns: {_counts(report['patterns'])}, in {report['library']}{stopped}")
    return 0


def _print(report: Mapping[str, Any]) -> None:
    table = plain_table("target", "pass", numbers=("blocks", "subgraphs", "pieces that it changes"))
    for row in report["passes"]:
        table.add_row(row["target"], row["pass"], *(str(row[key]) for key in ("block", "subgraph", "pieces")))
    Console().print(table)
    if "files" in report:
        _print_tests(report)
    stopped = " (stopped before the end)" if report["stopped"] else ""
    click.echo(
        f"{counted(report['patterns'], 'pattern')} ({_counts(report['granularity'])}),"
        f" {report['abstract']} with an abstract form, in {report['out']}{stopped}"
    )


def _print_tests(report: Mapping[str, Any]) -> None:
    click.echo(f"files: {_counts(report['files'])}; tests: {_counts(report['tests'])}")
    click.echo(
        f"{counted(report['pairs'], 'pair')} with {counted(len(report['named']), 'pass')} that the source names,"
        f" {counted(report['models'], 'model')} in {counted(report['pieces'], 'piece')}"
    )
    _print_left(report["left"])
    for note in report["notes"]:
        click.echo(f"  {note}")


def _print_left(left: Mapping[str, int]) -> None:
    if left:
        click.echo("left out:")
    for reason, count in list(left.items())[:_SHOWN]:
        click.echo(f"  {count} {reason}")
    if len(left) > _SHOWN:
        click.echo(f"  and {len(left) - _SHOWN} reasons more, which --json lists")


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {what}" for what, count in counts.items()) or "none"
