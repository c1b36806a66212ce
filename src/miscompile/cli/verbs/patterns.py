"""`miscompile patterns`: lists the patterns, and prints single ones."""

import difflib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.text import Text

from miscompile.base.errors import UsageError
from miscompile.base.wording import counted
from miscompile.cli.screens import Verb
from miscompile.reports.tables import PlainTable, plain_table
from miscompile.targets.registry import parse_target, target_names

if TYPE_CHECKING:
    from miscompile.patterns.pattern import Pattern

_SHOWN = 4
"""Largest number of operators, and of passes, in a row."""


@click.command("patterns", cls=Verb)
@click.argument("name", required=False, metavar="[NAME]")
@click.option(
    "--library",
    "libraries",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, readable=True, path_type=Path),
    metavar="FILE",
    help="Patterns that `miscompile harvest` has written, as well.",
)
@click.option("--target", metavar="TARGET", help="Only those that trigger a pass of TARGET.")
@click.option("--pass", "called", metavar="NAME", help="Only those that trigger this pass.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def command(
    name: str | None, libraries: tuple[Path, ...], target: str | None, called: str | None, as_json: bool
) -> int:
    """List patterns with the passes that they were observed to trigger, or print both forms of the one called NAME.

    The concrete form is a graph with fixed sizes; the abstract one, a motif, keeps its operators' conditions only.

    \b
    Examples:
      miscompile patterns
      miscompile patterns --target onnxruntime --pass GeluFusionL2
      miscompile patterns gelu_erf
      miscompile patterns --library mine.patterns --json
    """
    known = _all(libraries)
    if called is not None:
        _check_pass(known, target, called)
    found = [one for one in known if _wanted(one, target, called)]
    if name is not None:
        _show(_named(name, found), as_json=as_json)
    elif as_json:
        click.echo(json.dumps([_row(one) for one in found], indent=2))
    else:
        Console().print(_table(found))
        click.echo(counted(len(found), "pattern"))
    return 0


def _all(libraries: Sequence[Path]) -> list["Pattern"]:
    """Return the catalogue with its no-ops, the shipped mined patterns, and those of the libraries, in this order."""
    from miscompile.patterns.library import read_library
    from miscompile.patterns.shipped import patterns_of, shipped_patterns

    catalogue = patterns_of()
    known = {one.name for one in catalogue}
    found = [*catalogue, *(one for one in shipped_patterns() if one.name not in known)]
    for path in libraries:
        found += read_library(path)
    return found


def _check_pass(known: Sequence["Pattern"], target: str | None, called: str) -> None:
    """Raise UsageError for a pass that no target (or not `target`) has and that no pattern triggers there."""
    faces = [parse_target(name).about for name in ([target] if target else target_names())]
    names = {name for face in faces for name in (*face.passes, *face.rules)}
    every = [trigger for one in known for trigger in one.triggers]
    names |= {trigger.name for trigger in every if target is None or trigger.target == faces[0].name}
    if called not in names:
        near = difflib.get_close_matches(called, sorted(names), 3)
        hint = f"; did you mean {', '.join(near)}?" if near else "; `miscompile passes` lists them"
        raise UsageError(f"there is no pass {called} on {target or 'any target'}{hint}")


def _wanted(one: "Pattern", target: str | None, called: str | None) -> bool:
    """Tell whether a pattern triggers a pass of the target and the pass of the name, where these are given."""
    name = None if target is None else parse_target(target).about.name
    triggers = [trigger for trigger in one.triggers if name in (None, trigger.target)]
    if called is not None:
        return any(trigger.name == called for trigger in triggers)
    return name is None or bool(triggers)


def _named(name: str, found: Sequence["Pattern"]) -> "Pattern":
    """Return the pattern called `name`; raises UsageError with similar names."""
    for one in found:
        if one.name == name:
            return one
    near = difflib.get_close_matches(name, [one.name for one in found], 3)
    hint = f"; did you mean {', '.join(near)}?" if near else "; `miscompile patterns` lists them"
    raise UsageError(f"there is no pattern '{name}'{hint}")


def _row(one: "Pattern") -> dict[str, Any]:
    return {
        "name": one.name,
        "operators": list(one.operators),
        "granularity": one.granularity,
        "wakes": [trigger._asdict() for trigger in one.triggers],
        "origin": one.origin,
        "concrete": one.seed is not None,
        "abstract": one.motif is not None,
    }


def _show(one: "Pattern", *, as_json: bool) -> None:
    """Print a pattern with its forms."""
    from miscompile.graph.model import Model
    from miscompile.graph.text.printer import print_model
    from miscompile.patterns.print import print_motif

    graph = motif = None
    if one.seed is not None:
        graph = print_model(Model(one.seed.graph, {"": one.seed.opset}))
    if one.motif is not None:
        motif = print_motif(one.motif)
    if as_json:
        click.echo(json.dumps({**_row(one), "graph": graph, "motif": motif}, indent=2))
        return
    click.echo(f"{one.name}: a {one.granularity}, from {one.origin or 'nowhere'}")
    for target, names in _by_target(one).items():
        click.echo(f"triggers on {target}: {', '.join(names)}")
    for title, text in (("concrete", graph), ("abstract", motif)):
        click.echo(f"\n{title} form:\n{text}" if text else f"\nno {title} form")


def _by_target(one: "Pattern") -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for trigger in one.triggers:
        found.setdefault(f"{trigger.target} {trigger.version}", []).append(trigger.name)
    return found


def _table(found: Sequence["Pattern"]) -> PlainTable:
    table = plain_table("pattern", "operators", "granularity", "triggers", "origin")
    for one in found:
        triggers = [f"{trigger.target}: {trigger.name}" for trigger in one.triggers]
        cells = (one.name, _some(one.operators, " "), one.granularity, _some(triggers, ", ") or "-", one.origin)
        table.add_row(*map(Text, cells))
    return table


def _some(names: Sequence[str], between: str) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{between.join(names[:_SHOWN])}{more}"
