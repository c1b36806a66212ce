"""How `miscompile harvest` takes operator instances out of library tests; patterns are the verb's own business."""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from miscompile.base.errors import UsageError
from miscompile.targets.registry import load_attribute

LIBRARIES = ("onnx", "torch", "keras")
KINDS = ("tests", "constraints", "relations")
"""Where instances come from: tests, what documentation and signatures say of parameters, related operators."""
_SHOWN = 12


def harvest_library(
    library: str,
    kind: str,
    path: Path | None,
    out: Path | None,
    seconds: float,
    say: Callable[[str], None],
    *,
    as_json: bool,
) -> int:
    """Harvest instances of a library: of the tests at `path`, or of those that come with the library itself.

    They go to `out`, or without one to where `miscompile migrate` looks for them: then a harvest that was interrupted
    leaves what is there. Those that are generated instead (`kind`) always need `out`. Returns the exit code; raises
    KeyboardInterrupt when nothing is kept.
    """
    sources = "miscompile.harvest.libraries.sources"
    if kind != "tests":
        if path is not None:
            raise UsageError(f"--kind {kind} takes no PATH: it generates instances from what {library} says of itself")
        if out is None:
            raise UsageError(f"say with --out where the instances of kind {kind} are to go")
        archive, place = _generated(library, kind, out, say), out
    elif path is None:
        harvest = load_attribute(load_attribute(f"{sources}:HARVESTS")[library])
        archive = harvest(say, seconds=seconds) if library in load_attribute(f"{sources}:FILED") else harvest(say)
        place = out or load_attribute(f"{sources}:place_of")(library)
    else:
        if library == "onnx":
            raise UsageError("harvest onnx takes no PATH: its tests are data that come with onnx")
        if out is None:
            raise UsageError("say with --out where the instances of your own tests are to go")
        archive = load_attribute(load_attribute(f"{sources}:TESTS")[library])(path, say, seconds)
        place = out
    if archive.stopped and out is None:
        say("instances that were there before are left as they are; with --out FILE a part of them is kept")
        raise KeyboardInterrupt
    load_attribute("miscompile.instances.archive:write_archive")(archive, place)
    report = {"source": library, "path": None if path is None else str(path), "out": str(place), **figures(archive)}
    if as_json:
        click.echo(json.dumps(report, indent=2))
    else:
        _print(report)
    return 0


def _generated(library: str, kind: str, out: Path, say: Callable[[str], None]) -> Any:  # noqa: ANN401 - a late import
    """Return instances that constraints or relations give; relations themselves are written beside `out`."""
    load_attribute("miscompile.instances.archive:check_place")(out)  # the harvest takes long
    if kind == "constraints":
        bases = load_attribute("miscompile.harvest.libraries.sources:harvested")(library, say)
        return load_attribute("miscompile.harvest.constraints.run:harvest_constraints")(library, say, bases=bases)
    load_attribute("miscompile.harvest.libraries.sources:own_instances")(library, say)  # harvests them if need be
    known = load_attribute("miscompile.harvest.libraries.sources:place_of")(library)
    harvest = load_attribute("miscompile.harvest.relations.run:harvest_relations")
    archive, relations = harvest(library, known, say)
    load_attribute("miscompile.harvest.relations.refuted:keep_relations")(relations, archive, out, say)
    return archive


def figures(archive: Any) -> dict[str, Any]:  # noqa: ANN401 - the archive's module is imported late
    """Return what a harvest gave, as JSON values."""
    sources = Counter(instance.source for instance in archive.instances)
    return {
        "library": archive.library,
        "versions": dict(archive.versions),
        "instances": len(archive.instances),
        "operators": len({instance.api for instance in archive.instances}),
        "sources": {
            name: {
                "instances": count,
                "operators": len({one.api for one in archive.instances if one.source == name}),
            }
            for name, count in sources.most_common()
        },
        "figures": dict(archive.figures),
    }


def _print(report: dict[str, Any]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("source")
    for name in ("instances", "operators"):
        table.add_column(name, justify="right")
    for name, row in report["sources"].items():
        table.add_row(name, f"{row['instances']:,}", f"{row['operators']:,}")
    table.add_row("all", f"{report['instances']:,}", f"{report['operators']:,}")
    Console().print(table)
    for name, value in report["figures"].items():
        if isinstance(value, dict):
            click.echo(f"{name}:")
            for reason, count in list(value.items())[:_SHOWN]:
                click.echo(f"  {count} {reason}")
            if len(value) > _SHOWN:
                click.echo(f"  and {len(value) - _SHOWN} more, which --json lists")
        else:
            click.echo(f"{name}: {value}")
    click.echo(f"the instances are in {report['out']}")
