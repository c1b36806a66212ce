"""`miscompile support`: onnx's own node cases on a compiler."""

import json
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from miscompile.api.plans import cpus
from miscompile.base.errors import UsageError
from miscompile.cli import values
from miscompile.cli.options import phases, ready
from miscompile.cli.screens import Verb
from miscompile.cli.verbosity import verbosity_options
from miscompile.core.events import WorkPhase
from miscompile.producers.slices.table import SupportTable, difference, load_table
from miscompile.reports.tables import difference_view, plain_table, table_view
from miscompile.targets.registry import parse_target


@click.command("support", cls=Verb, usual=("--ops", "--out", "--diff", "--refused", "--install", "--json"))
@click.argument("targets", nargs=-1, metavar="[TARGET...]")
@click.option("--level", default="full", show_default=True, help="Build level.")
@click.option("--ops", callback=values.names, metavar="NAMES", help="Only cases of these operators, as in Add,Conv.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="Write TARGET.json into this folder.")
@click.option(
    "--diff",
    nargs=2,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="OLD NEW",
    help="Show what differs between two tables that --out has written.",
)
@click.option(
    "--refused",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="OUT",
    help="Show what the targets of the campaign or migration in OUT refused, and why.",
)
@click.option("--workers", type=click.IntRange(1, 1024), metavar="N", help="Workers. [default: one for each CPU]")
@click.option(
    "--limit-seconds",
    type=click.FloatRange(0, min_open=True),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="A case that takes longer is a hang.",
)
@click.option("--install", is_flag=True, help="Install the compiler in an environment of its own when it is not here.")
@verbosity_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def command(targets: tuple[str, ...], as_json: bool, **given: Any) -> int:  # noqa: ANN401 - click passes by name
    """Run every node case of onnx's backend tests on TARGET: passed, wrong, unsupported, rejected, error, crash.

    \b
    Examples:
      miscompile support onnxruntime
      miscompile support onnxruntime openvino --out tables
      miscompile support onnxruntime==1.20.1 --ops Conv,Resize --json
      miscompile support --diff tables/onnxruntime==1.20.1.json tables/tvm.json
      miscompile support --refused miscompile-out
    \f
    --refused lists by operator and reason how many programs of a campaign, or tests of a migration, were refused. Where
    programs of that operator alone were taken as well (`taken`), the refusal depends on their form: attributes, ranks,
    types, constants; `miscompile fuzz TARGET --check forms` makes findings of such refusals.
    """
    if given["refused"]:
        if targets:
            raise UsageError("--refused shows what a campaign has counted; leave the targets out")
        return _refused(given["refused"], as_json=as_json)
    if given["diff"]:
        if targets:
            raise UsageError("--diff compares two written tables; leave the targets out")
        return _difference(*given["diff"], as_json=as_json)
    if not targets:
        raise UsageError("name a target, or compare two written tables with --diff")
    for target in targets:
        spec = parse_target(target)
        if given["level"] not in spec.about.levels:
            raise UsageError(f"{target} has no level {given['level']}; it has: {', '.join(spec.about.levels)}")
    out: Path | None = given["out"]
    if out is not None:
        _writable(out)
    tables: list[SupportTable] = []
    for target in [ready(target, install=given["install"]) for target in targets]:
        table = _survey(target, given, as_json=as_json)
        tables.append(table)
        if out is not None:
            (out / f"{table.target}.json").write_text(json.dumps(table.as_json(), indent=1), "utf-8")
        if not as_json:
            Console().print(table_view(table))
    if as_json:
        click.echo(json.dumps([table.as_json() for table in tables], indent=1))
    return 0


def _survey(target: str, given: dict[str, Any], *, as_json: bool) -> SupportTable:
    from miscompile.engine.survey import table_of

    workers = given["workers"] or cpus()
    with phases(as_json=as_json) as on_phase:

        def on_progress(done: int, total: int) -> None:
            on_phase(WorkPhase(f"running onnx's cases on {target}", done, total))

        return table_of(target, given["level"], given["ops"], workers, given["limit_seconds"], on_progress)


def _refused(out: Path, *, as_json: bool) -> int:
    from miscompile.migration.refusals import refusals_in

    rows = refusals_in(out)
    if as_json:
        click.echo(json.dumps([row.as_json() for row in rows], indent=1))
        return 0
    shown = plain_table("target", "operator", "reason", "why it counts as lawful", numbers=("refused", "taken"))
    for row in rows:
        taken = f"{row.taken:,}" if row.operator else "-"
        shown.add_row(row.target, row.operator or "several", row.reason, row.verdict, f"{row.refused:,}", taken)
    Console().print(shown)
    return 0


def _writable(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
        probe = out / ".probe"
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror}; choose another --out") from None


def _difference(old: Path, new: Path, *, as_json: bool) -> int:
    before, after = load_table(old), load_table(new)
    rows = difference(before, after)
    if as_json:
        click.echo(json.dumps(rows, indent=1))
    else:
        Console().print(difference_view(before, after, rows))
    return 0
