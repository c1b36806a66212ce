"""`miscompile targets`: the compilers that can be tested here, and their environments."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from miscompile.base.errors import UsageError
from miscompile.cli.options import phases, ready
from miscompile.cli.screens import VerbSet
from miscompile.cli.verbosity import tell, verbosity_options
from miscompile.environments import cache
from miscompile.environments.cache import Environment
from miscompile.environments.resolve import make_newest, make_version
from miscompile.reports.tables import PlainTable, plain_table
from miscompile.targets.registry import about, broken_targets, installed, parse_target, target_names

_json = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


@click.group("targets", cls=VerbSet, invoke_without_command=True)
@click.option("--matrix", "wanted", metavar="TARGET", help="Probe which operator takes which dtype on TARGET.")
@click.option("--devices", "ask", is_flag=True, help="Ask each compiler which of its devices are here; takes seconds.")
@_json
@click.pass_context
def command(ctx: click.Context, wanted: str | None, ask: bool, as_json: bool) -> int:
    """List the compilers, their versions and passes.

    \b
    Examples:
      miscompile targets
      miscompile targets --matrix onnxruntime
      miscompile targets install onnxruntime==1.20.1
    \f
    A compiler that is not installed beside this tool, or another version of one, runs in an environment of its own.
    It is made when a target such as onnxruntime==1.20.1 is first used, or by `install`.

    \b
    More examples:
      miscompile targets --devices
      miscompile targets environments
      miscompile targets remove onnxruntime==1.20.1
    """
    if ctx.invoked_subcommand is not None:
        return 0
    if wanted is not None:
        from miscompile.engine.single import matrix

        spec = ready(wanted)
        with phases(as_json=as_json) as on_phase:
            found = matrix(spec, on_phase)
        _matrix(found, as_json=as_json)
        return 0
    rows = [*(_row(name, ask=ask) for name in target_names()), *_broken_rows()]
    if as_json:
        click.echo(json.dumps(rows, indent=2))
    else:
        Console().print(_table(rows))
        for line in _missing(rows):
            click.echo(line)
    return 0


@command.command("install", short_help="Make environments.")
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
@verbosity_options
def install(targets: tuple[str, ...]) -> int:
    """Make an environment for each TARGET: for the version that it names, else for the newest release.

    A name without version then runs in the environment with the newest release, unless the compiler is installed
    beside this tool.

    \b
    Examples:
      miscompile targets install onnxruntime==1.20.1 openvino==2023.1.0
      miscompile targets install tvm
    """
    for spec in [parse_target(text) for text in targets]:
        made = (
            make_newest(spec.environment_name, tell)
            if spec.version is None
            else make_version(spec.environment_name, spec.version, tell)
        )
        click.echo(f"{made.target}=={made.version} runs in {made.path}")
    return 0


@command.command("environments", short_help="List the environments that were made.")
@_json
def environments(as_json: bool) -> int:
    """List the environments with their Python, size and requirements."""
    found = cache.environments()
    if as_json:
        click.echo(json.dumps([one.as_json() for one in found], indent=2))
    elif found:
        Console().print(_environments_table(found))
    else:
        click.echo("there are no environments; `miscompile targets install TARGET==VERSION` makes one")
    return 0


@command.command("remove", short_help="Remove environments.")
@click.argument("targets", nargs=-1, metavar="TARGET...")
@click.option(
    "--all", "everything", is_flag=True, help="Remove every environment, and what is left of unfinished ones."
)
def remove(targets: tuple[str, ...], everything: bool) -> int:
    """Remove the environment of each TARGET; a name without version stands for all versions of it.

    \b
    Examples:
      miscompile targets remove onnxruntime==1.20.1
      miscompile targets remove tvm
      miscompile targets remove --all
    """
    if everything == bool(targets):
        raise UsageError("name the targets whose environments to remove, or give --all")
    names = dict.fromkeys(name for text in targets for name in _names(text))
    if everything:
        names = dict.fromkeys([*(one.name for one in cache.environments()), *cache.leftovers()])
    for name in names:
        if cache.remove(name, tell):
            click.echo(f"removed {name}")
    return 0


def _names(text: str) -> list[str]:
    """Return the names of the environments that a spec stands for. Raises UsageError when there are none."""
    spec = parse_target(text)
    if spec.version is not None:
        found = cache.find(spec.environment_name, spec.version)
        names = [] if found is None else [found.name]
    else:
        names = [one.name for one in cache.environments() if one.target == spec.environment_name]
    if not names:
        raise UsageError(f"there is no environment for {text}; `miscompile targets environments` lists them")
    return names


def _row(name: str, *, ask: bool) -> dict[str, Any]:
    from miscompile.engine.devices import present

    face = about(name)
    found = {distribution: installed(distribution) for distribution in face.distributions}
    missing = [distribution for distribution, version in found.items() if version is None]
    asked = present(name) if ask and not missing else {}
    return {
        "name": name,
        "title": face.title,
        "versions": {distribution: version for distribution, version in found.items() if version is not None},
        "problem": f"{', '.join(missing)} not installed" if missing else "",
        "kinds": list(face.kinds),
        "levels": list(face.levels),
        "passes": len(face.passes),
        "switches": face.switches,
        "max_opset": parse_target(name).about.max_opset,
        "options": dict(face.options),
        "devices": [device for device in face.devices if not asked.get(device)],
        "absent": {device: why for device, why in asked.items() if why},
        "environments": [one.version for one in cache.environments() if one.target == name],
    }


def _broken_rows() -> list[dict[str, Any]]:
    """Return a row, with the reason, for each target of another package that cannot be used."""
    empty: dict[str, Any] = {"title": "", "versions": {}, "kinds": [], "levels": [], "passes": 0, "switches": ""}
    empty |= {"max_opset": 0, "options": {}, "devices": [], "absent": {}, "environments": []}
    return [{"name": name, **empty, "problem": f"broken: {why}"} for name, why in broken_targets().items()]


def _table(rows: Sequence[Mapping[str, Any]]) -> PlainTable:
    table = plain_table("target", "version", "kinds", "levels", "devices", "releases", numbers=("passes",))
    for row in rows:
        version = ", ".join(f"{name} {number}" for name, number in row["versions"].items())
        shown = Text(version or "built in")
        if row["problem"]:
            broken = row["problem"].startswith("broken")
            shown = Text("broken", style="red") if broken else Text("not installed", style="yellow")
        made = ", ".join(row["environments"])
        lists = (", ".join(row[key]) for key in ("kinds", "levels", "devices"))
        table.add_row(row["name"], shown, *lists, made or "-", str(row["passes"]))
    return table


def _missing(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each broken target, and for each device that a compiler has builds for but that is not here."""
    broken = [row["problem"] for row in rows if row["problem"].startswith("broken")]
    return [*broken, *(why for row in rows for why in row["absent"].values())]


def _environments_table(found: Sequence[Environment]) -> PlainTable:
    table = plain_table("target", "python", "size", "requirements")
    for one in found:
        name = f"{one.target}=={one.version}" + (f" (also {one.target})" if one.bare else "")
        table.add_row(Text(name), one.python, f"{one.size >> 20} MiB", Text(" ".join(one.requirements)))
    return table


def _matrix(found: Mapping[str, Mapping[str, bool]], *, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({op: dict(row) for op, row in found.items()}, indent=2))
        return
    table = plain_table("operator", "takes", "does not take")
    for op, row in found.items():
        takes, refuses = (" ".join(dtype for dtype in row if row[dtype] is said) for said in (True, False))
        table.add_row(op, takes, refuses)
    Console().print(table)
