"""Plan files: the options of a campaign in TOML, under the names that they have on the command line.

    targets = ["onnxruntime"]
    time = "2h"
    check = ["levels", "exact"]

The options of the command take precedence. Every value is checked as the command's own would be, and an error names the
line of the file.
"""

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from miscompile.base.errors import MiscompileError, UsageError

TARGETS = "targets"
_NOT_HERE = frozenset({"plan", "json", "resume", "help", "quiet", "verbose"})
"""Options that say what one call of the command does, and so have no place in a plan."""

_AT = re.compile(r"(?P<what>.*) \(at line (?P<line>\d+), column \d+\)")


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan file that was read: the raw values by key, and the line of each key."""

    path: Path
    values: Mapping[str, Any]
    lines: Mapping[str, int]

    def error(self, key: str, text: str) -> UsageError:
        """Return the error about a key, with file and line."""
        return UsageError(f"{self.path}:{self.lines.get(key, 1)}: {key}: {text}")


def read_plan(path: Path) -> PlanFile:
    """Read a plan file. Raises UsageError, with the line, for text that is no TOML."""
    try:
        text = path.read_text("utf-8")
        values = tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}:1: this is no text in UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        found = _AT.fullmatch(str(error))
        line, what = (found["line"], found["what"]) if found else (text.count("\n") + 1, str(error))
        raise UsageError(f"{path}:{line}: this is no TOML: {what}") from None
    return PlanFile(path, values, {key: _line_of(text, key) for key in values})


def settle(file: PlanFile, ctx: click.Context) -> dict[str, Any]:
    """Return the values of a plan file by the names of the command's parameters, as `click` takes defaults.

    Raises UsageError for an unknown key, and for a value that the command would refuse.
    """
    options = options_of(ctx.command)
    found: dict[str, Any] = {}
    for key, value in file.values.items():
        if key != TARGETS and key not in options:
            raise file.error(key, f"there is no such option; there are: {', '.join((TARGETS, *sorted(options)))}")
        param = options.get(key) or next(one for one in ctx.command.params if one.name == TARGETS)
        raw = _raw(file, key, value, param)
        try:
            param.process_value(ctx, raw)
        except click.BadParameter as error:
            raise file.error(key, error.message.rstrip(".")) from None
        found[str(param.name)] = raw
    return found


def options_of(command: click.Command) -> dict[str, click.Option]:
    """Return the options of a command that a plan may set, by their long names without dashes."""
    found = {}
    for param in command.params:
        if isinstance(param, click.Option):
            name = next(word for word in param.opts if word.startswith("--"))[2:]
            if name not in _NOT_HERE:
                found[name] = param
    return found


def located(file: PlanFile, check: Callable[[Sequence[str]], object]) -> None:
    """Run `check` with all keys of a plan file; an error is raised with the line of the key that alone causes it.

    `check` takes the keys that count, and raises MiscompileError for a plan that cannot work.
    """
    try:
        check(tuple(file.values))
    except MiscompileError as error:
        for key in file.values:
            try:
                check(tuple(dict.fromkeys((TARGETS, key))))
            except MiscompileError as alone:
                raise file.error(key, str(alone)) from None
        raise UsageError(f"{file.path}: {error}") from None


def plan_text(values: Mapping[str, Any]) -> str:
    """Print options as a plan file; JSON's strings, numbers, booleans and lists are TOML's as well."""
    text = "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in values.items())
    return text.replace("\x7f", "\\u007f")  # the one character that JSON admits in a string and TOML does not


def _raw(file: PlanFile, key: str, value: Any, param: click.Parameter) -> Any:  # noqa: ANN401 - TOML's values
    """Return a value of TOML as the command line would give it. Raises UsageError for a wrong type."""
    several = isinstance(value, list)
    items = value if several else [value]
    if not items or any(not isinstance(one, str | int | float) for one in items):
        raise file.error(key, "give text, a number, true or false, or a list of them")
    flag = isinstance(param, click.Option) and param.is_flag
    if flag != isinstance(items[0], bool) or any(isinstance(one, bool) for one in items[1:]):
        raise file.error(key, "this is true or false" if flag else "this is not true or false")
    if flag:
        if several:
            raise file.error(key, "this is true or false")
        return value
    if param.multiple or param.nargs == -1:
        return tuple(map(str, items))
    if several and not _takes_names(param):
        raise file.error(key, "this is one value, not a list")
    return ",".join(map(str, items))


def _takes_names(param: click.Parameter) -> bool:
    """Tell whether an option is a list of names with commas."""
    return str(param.metavar) == "NAMES"


def _line_of(text: str, key: str) -> int:
    """Return the line on which a top-level key or table begins; 1 when it is written in an unusual way."""
    word = re.compile(rf"""\s*(?:\[+\s*)?["']?{re.escape(key)}["']?\s*[=.\]]""")
    return next((number for number, line in enumerate(text.split("\n"), 1) if word.match(line)), 1)
