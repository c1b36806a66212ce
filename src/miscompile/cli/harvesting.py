"""The part of `miscompile harvest` that extracts operator instances from library tests."""

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from miscompile.base.errors import UsageError
from miscompile.core.events import ProgressListener
from miscompile.reports.tables import plain_table

if TYPE_CHECKING:
    from miscompile.instances.archive import Archive
    from miscompile.instances.instance import Library

KINDS = ("tests", "constraints", "neighbours", "relations")
"""Origins of instances: tests, constraints from documentation, neighbours of tests, related operators."""
_SHOWN = 12
_COVERAGE = "coverage"


def harvest_library(
    library: "Library",
    kind: str,
    path: Path | None,
    out: Path | None,
    seconds: float,
    on_progress: ProgressListener,
    *,
    as_json: bool,
    count: int | None = None,
    seed: int = 0,
) -> int:
    """Harvest instances of a library: of the tests at `path`, or of those that come with the library itself.

    They go to `out`, or without one to where `miscompile migrate` looks for them: then a harvest that was interrupted
    leaves what is there. Those that are generated instead (`kind`) always need `out`; `count` is the most of an
    operator (neighbours only). Returns the exit code; raises KeyboardInterrupt when nothing is kept.
    """
    from miscompile.harvest.libraries.sources import harvest_at, harvest_own, place_of
    from miscompile.instances.archive import write_archive

    if kind != "neighbours" and count is not None:
        raise UsageError(f"--each is for --kind neighbours, the most of an operator; --kind {kind} has no such limit")
    if kind != "tests":
        if path is not None:
            raise UsageError(f"--kind {kind} takes no PATH: it generates instances from what {library} says of itself")
        if out is None:
            raise UsageError(f"say with --out where the instances of kind {kind} are to go")
        archive, place = _generated(library, kind, out, on_progress, count, seed), out
    elif path is None:
        archive = harvest_own(library, on_progress, seconds)
        place = out or place_of(library)
    else:
        if library == "onnx":
            raise UsageError("harvest onnx takes no PATH: its tests are data that come with onnx")
        if out is None:
            raise UsageError("say with --out where the instances of your own tests are to go")
        archive, place = harvest_at(library, path, on_progress, seconds), out
    if archive.stopped and out is None:
        on_progress("instances that were there before are left as they are; with --out FILE a part of them is kept")
        raise KeyboardInterrupt
    write_archive(archive, place)
    report = {"source": library, "path": None if path is None else str(path), "out": str(place), **figures(archive)}
    if as_json:
        click.echo(json.dumps(report, indent=2))
    else:
        _print(report)
    return 0


def _generated(
    library: "Library", kind: str, out: Path, on_progress: ProgressListener, count: int | None, seed: int
) -> "Archive":
    """Return generated instances of a kind; relations, and the classes of neighbours, are written beside `out`."""
    from miscompile.harvest.constraints.run import harvest_constraints
    from miscompile.harvest.libraries.sources import harvested, own_instances, place_of
    from miscompile.harvest.neighbours.run import COUNT, harvest_neighbours
    from miscompile.harvest.relations.refuted import keep_relations
    from miscompile.harvest.relations.run import harvest_relations
    from miscompile.instances.archive import check_place
    from miscompile.instances.classes import write_classes

    check_place(out)  # the harvest takes long
    if kind == "constraints":
        return harvest_constraints(library, on_progress, seed, bases=harvested(library, on_progress))
    own_instances(library, on_progress)  # harvests them if need be
    if kind == "neighbours":
        archive, classes = harvest_neighbours(library, place_of(library), on_progress, seed, count or COUNT)
        write_classes(classes, out)
        return archive
    archive, relations = harvest_relations(library, place_of(library), on_progress)
    keep_relations(relations, archive, out, on_progress)
    return archive


def figures(archive: "Archive") -> dict[str, Any]:
    """Return the figures of a harvest, as JSON values."""
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
    table = plain_table("source", numbers=("instances", "operators"))
    for name, row in report["sources"].items():
        table.add_row(name, f"{row['instances']:,}", f"{row['operators']:,}")
    table.add_row("all", f"{report['instances']:,}", f"{report['operators']:,}")
    Console().print(table)
    for name, value in report["figures"].items():
        if name == _COVERAGE:
            _print_coverage(value)
        elif isinstance(value, dict):
            click.echo(f"{name}:")
            for reason, count in list(value.items())[:_SHOWN]:
                click.echo(f"  {count} {reason}")
            if len(value) > _SHOWN:
                click.echo(f"  and {len(value) - _SHOWN} more, which --json lists")
        else:
            click.echo(f"{name}: {value}")
    click.echo(f"the instances are in {report['out']}")


def _print_coverage(rows: list[dict[str, Any]]) -> None:
    """Print the pairs of classes of each operator, and the classes that no instance has, by reason."""
    columns = ("tests", "kept", "refused", "in tests", "new", "only refused", "not tried", "not generated")
    table = plain_table("operator", numbers=columns)
    for row in rows:
        counts = (row["tests"], row["kept"], row["refused"], *row["pairs"].values())
        table.add_row(row["operator"], *(f"{count:,}" for count in counts))
    Console().print(table)
    click.echo("the last five columns count pairs of classes of parameters; classes that no instance has:")
    for why, count in Counter(item["why"] for row in rows for item in row["missing"]).most_common():
        click.echo(f"  {count} {why}")
    click.echo("  --json lists them for each operator")
