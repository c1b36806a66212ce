"""Confirmation: runs a standalone script in fresh processes and checks that each shows the bug."""

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from miscompile.base.child import collect
from miscompile.triage.script import DIES, SHOWS

_TAIL = 4000
_TIMES = 3


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """The result of a script: the bug `shows`, is `absent`, or the script itself is `broken` (or did not end).

    `code` is the exit status, negative for a signal, None when the time limit ended it; `seconds` is its duration.
    """

    status: Literal["shows", "absent", "broken"]
    code: int | None
    stdout: str
    stderr: str
    seconds: float


def run_script(path: Path, python: str | Path | None = None, seconds: float = 60) -> ScriptResult:
    """Run the script at `path` in a fresh interpreter for at most `seconds`.

    `python` is the interpreter that has the compiler; None stands for this one. A script that hangs ends with this
    process.

    An exit status of 1 counts only after the script has printed `SHOWS`, because an import error exits with 1 as well.
    A death counts only after the script has printed `DIES`.
    """
    done = collect([str(python or sys.executable), "-I", str(path)], seconds=seconds)
    status = "broken" if done.status is None else _status(done.status, done.output())
    return ScriptResult(status, done.status, done.output(_TAIL), done.errors(_TAIL), done.seconds)


def confirm(
    path: Path, python: str | Path | None = None, seconds: float = 60, times: int = _TIMES
) -> tuple[ScriptResult, ...]:
    """Run the script up to `times` times; stop after the first run that does not show the bug."""
    results: list[ScriptResult] = []
    while len(results) < times and all(result.status == "shows" for result in results):
        results.append(run_script(path, python, seconds))
    return tuple(results)


def confirmed(results: tuple[ScriptResult, ...]) -> bool:
    """Tell whether the bug showed every time, in what `confirm` returned."""
    return bool(results) and all(result.status == "shows" for result in results)


def needed_settings(script: str, settings: Mapping[str, str], shows: Callable[[str], bool]) -> tuple[str, ...]:
    """Return the compiler's options, by name, without which `script` does not show the bug.

    `settings` maps names to the statements that set them; those that the script lacks are left out. `shows` runs a
    script. Mostly none is needed, which one run tells.
    """
    lines = [line.strip() for line in script.splitlines()]
    own = {name: statement for name, statement in settings.items() if statement in lines}
    if not own or shows(_without(script, own.values())):
        return ()
    return tuple(name for name, statement in own.items() if not shows(_without(script, (statement,)))) or tuple(own)


def _without(script: str, statements: Collection[str]) -> str:
    lines = script.splitlines(keepends=True)
    return "".join(line.replace(line.strip(), "pass") if line.strip() in statements else line for line in lines)


def _status(code: int, stdout: str) -> Literal["shows", "absent", "broken"]:
    lines = stdout.splitlines()
    if code == 0:
        return "absent"
    if any(line.startswith(SHOWS) for line in lines):
        return "shows" if code == 1 else "broken"
    return "shows" if any(line.startswith(DIES) for line in lines) and code != 1 else "broken"
