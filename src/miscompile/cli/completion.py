"""Completion in a shell, which must answer at once: commands without their code, made from a file that lists them.

A verb imports what it runs, and that takes longer than a person waits for a Tab. So `commands.json` lists the words of
every verb, and click's own completion works on commands made from it. `python -m miscompile.cli.reference` writes the
file, and a test says when it is out of date.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from miscompile.base.plugins import added

TABLE = "commands.json"
SHELLS = ("bash", "zsh", "fish")
Matching = list[CompletionItem]


def script(shell: str, group: click.Group) -> str:
    """Return the script that makes `shell` ask `group` for completions."""
    made = click.shell_completion.get_completion_class(shell)
    assert made is not None, "click knows these shells"
    return made(group, {}, "miscompile", "_MISCOMPILE_COMPLETE").source()


def light_command(verb: str, line: str) -> click.Command:
    """Return a command with the words of `verb` and without its code; `line` says what it does."""
    return _command(verb, {"line": line, **_table()["verbs"].get(verb, {})})


def target_names() -> list[str]:
    """Return the names of all targets, those of other packages as well; none of them is imported."""
    offered = (offer.name for offer in added("miscompile.targets"))
    return sorted({*_table()["targets"], *offered})


def _command(name: str, entry: Mapping[str, Any]) -> click.Command:
    params = [_parameter(one) for one in entry.get("parameters", ())]
    inner = {key: _command(key, value) for key, value in entry.get("commands", {}).items()}
    if inner:
        return click.Group(name, commands=inner, params=params, help=entry["line"], invoke_without_command=True)
    return click.Command(name, params=params, help=entry["line"])


def _parameter(entry: Mapping[str, Any]) -> click.Parameter:
    value = entry["value"]
    complete = partial(_VALUES[value], entry.get("words", ())) if value in _VALUES else None
    names, kind, nargs = entry["names"], _PATHS.get(value), entry.get("nargs", 1)
    if "help" not in entry:
        return click.Argument(names, nargs=nargs, required=False, type=kind, shell_complete=complete)
    if value == "flag":
        return click.Option(_declared(names), is_flag=True, help=entry["help"])
    several = entry.get("multiple", False)
    return click.Option(names, nargs=nargs, multiple=several, type=kind, help=entry["help"], shell_complete=complete)


def _declared(names: Sequence[str]) -> list[str]:
    """Return the names of a flag as click declares them: one that has an opposite is `--yes/--no`."""
    *given, last = names
    return ["/".join((*given, last))] if last.startswith("--no-") else list(names)


def _words(words: Sequence[str], ctx: click.Context, param: click.Parameter, incomplete: str) -> Matching:
    del ctx, param
    return [CompletionItem(word) for word in words if word.startswith(incomplete)]


def _names(words: Sequence[str], ctx: click.Context, param: click.Parameter, incomplete: str) -> Matching:
    """Complete the last one of several names with commas between them."""
    given, comma, last = incomplete.rpartition(",")
    fresh = [word for word in words if word not in given.split(",")]
    return [CompletionItem(given + comma + item.value) for item in _words(fresh, ctx, param, last)]


def _targets(words: Sequence[str], ctx: click.Context, param: click.Parameter, incomplete: str) -> Matching:
    del words
    return _words(target_names(), ctx, param, incomplete)


def _findings(words: Sequence[str], ctx: click.Context, param: click.Parameter, incomplete: str) -> Matching:
    """Complete the identifiers of the findings in the campaign that is named before; a folder has the name of one."""
    del words
    folder = Path(str(ctx.params.get("out") or "")) / "findings"
    names = sorted(one.name for one in folder.iterdir() if one.is_dir()) if folder.is_dir() else []
    return _words([name for name in names if not name.startswith(".")], ctx, param, incomplete)


_VALUES: dict[str, Callable[[Sequence[str], click.Context, click.Parameter, str], Matching]] = {
    "words": _words,
    "names": _names,
    "target": _targets,
    "finding": _findings,
}
_PATHS = {"folder": click.Path(file_okay=False), "file": click.Path()}


@cache
def _table() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files("miscompile.cli").joinpath(TABLE).read_text("utf-8"))
    return found
