"""`miscompile targets`: what can be tested here."""

import json
from collections.abc import Mapping
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from miscompile.base.errors import UsageError
from miscompile.cli import calls
from miscompile.targets.registry import TARGETS, about, parse_target, versions


@click.command("targets", short_help="What can be tested here.")
@click.option("--matrix", "wanted", metavar="TARGET", help="Probe which operator takes which dtype on TARGET.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def command(wanted: str | None, as_json: bool) -> int:
    """List the compilers, their versions and passes.

    \b
    Examples:
      miscompile targets
      miscompile targets --matrix onnxruntime
      miscompile targets --json
    """
    if wanted is not None:
        versions(parse_target(wanted).about)
        _matrix(calls.matrix(wanted), as_json=as_json)
        return 0
    rows = [_row(name) for name in TARGETS]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    else:
        Console().print(_table(rows))
    return 0


def _row(name: str) -> dict[str, Any]:
    face = about(name)
    try:
        found, problem = versions(face), ""
    except UsageError as error:
        found, problem = {}, str(error)
    return {
        "name": name,
        "title": face.title,
        "versions": found,
        "problem": problem,
        "kinds": list(face.kinds),
        "levels": list(face.levels),
        "passes": len(face.passes),
        "max_opset": face.max_opset,
        "options": dict(face.options),
    }


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("target", "version", "kinds", "levels"):
        table.add_column(name, overflow="fold")
    table.add_column("passes", justify="right")
    for row in rows:
        version = ", ".join(f"{name} {number}" for name, number in row["versions"].items())
        shown = Text(row["problem"], style="yellow") if row["problem"] else Text(version or "built in")
        table.add_row(row["name"], shown, ", ".join(row["kinds"]), ", ".join(row["levels"]), str(row["passes"]))
    return table


def _matrix(found: Mapping[str, Mapping[str, bool]], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({op: dict(row) for op, row in found.items()}, indent=2))
        return
    dtypes = list(dict.fromkeys(dtype for row in found.values() for dtype in row))
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("operator")
    for dtype in dtypes:
        table.add_column(dtype, justify="center")
    marks = {True: "yes", False: "-", None: ""}
    for op, row in found.items():
        table.add_row(op, *(marks[row.get(dtype)] for dtype in dtypes))
    Console().print(table)
