"""The table for completion, `cli/commands.json`: each verb's parameters, and what kind of word each of them takes."""

import json
from typing import Any

import click

from miscompile.cli.main import VERBS, program
from miscompile.engine.checks import CHECKS
from miscompile.targets.registry import CATALOGUE, target_names


def table() -> str:
    """Return the text of the file. Imports every verb."""
    ctx = click.Context(program, info_name="miscompile")
    verbs = {}
    for verb in VERBS:
        command = program.get_command(ctx, verb)
        assert command is not None
        verbs[verb] = _entry(command, ctx)
    targets = [name for name in target_names() if name in CATALOGUE.built_in]
    lines = ",\n".join(f"{json.dumps(verb)}: {json.dumps(entry)}" for verb, entry in verbs.items())
    return f'{{"targets": {json.dumps(targets)},\n"verbs": {{\n{lines}\n}}}}\n'


def _entry(command: click.Command, parent: click.Context) -> dict[str, Any]:
    ctx = click.Context(command, info_name=command.name, parent=parent)
    entry: dict[str, Any] = {
        "parameters": [_parameter(one) for one in command.get_params(ctx) if "--help" not in one.opts]
    }
    if isinstance(command, click.Group):
        entry["commands"] = {
            name: {"line": one.get_short_help_str(), **_entry(one, ctx)} for name, one in command.commands.items()
        }
    return entry


def _parameter(param: click.Parameter) -> dict[str, Any]:
    value, words = _value(param)
    entry: dict[str, Any] = {"names": [param.name], "value": value}
    if words:
        entry["words"] = words
    if param.nargs != 1:
        entry["nargs"] = param.nargs
    if isinstance(param, click.Option):
        entry["names"] = [*param.opts, *param.secondary_opts]
        entry["help"] = (param.help or "").partition(". ")[0].rstrip(".")
        if param.multiple:
            entry["multiple"] = True
    return entry


def _value(param: click.Parameter) -> tuple[str, list[str]]:
    """Return the kind of word that a parameter takes, and the words if they are known beforehand."""
    metavar = str(param.metavar or "")
    if isinstance(param, click.Option) and (param.is_flag or param.count):
        return "flag", []
    if isinstance(param.type, click.Choice):
        return "words", [str(one) for one in param.type.choices]
    if param.name == "checks":
        return "names", [*CHECKS, "all"]
    if param.name == "verb":
        return "words", list(VERBS)
    if metavar.strip("[].") == "TARGET":
        return "target", []
    if metavar.strip("[].") == "ID":
        return "finding", []
    if isinstance(param.type, click.Path):
        return ("file" if param.type.file_okay else "folder"), []
    return "text", []
