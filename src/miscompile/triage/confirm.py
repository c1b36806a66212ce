"""Confirmation: runs a standalone script in processes of its own and checks that each shows the bug."""

import json
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Literal

from miscompile.base.child import Conversation, collect
from miscompile.triage.script import DIES, SHOWS

_TAIL = 4000
_TIMES = 3
_FRESH = 2
"""Runs in fresh processes, at least."""

_SERVER = Path(__file__).with_name("script_server.py")
_IMPORT_SECONDS = 60.0
"""Time that a server has for the imports of a script, beside the script's own."""


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


def run_script(
    path: Path, python: str | Path | None = None, seconds: float = 60, environment: Mapping[str, str] | None = None
) -> ScriptResult:
    """Run the script at `path` in a fresh interpreter for at most `seconds`, in this environment or another one.

    `python` is the interpreter that has the compiler; None stands for this one. A script that hangs ends with this
    process.

    An exit status of 1 counts only after the script has printed `SHOWS`, because an import error exits with 1 as well.
    A death counts only after the script has printed `DIES`.
    """
    command = [str(python or sys.executable), "-I", str(path)]
    done = collect(command, seconds=seconds, environment=environment)
    status = "broken" if done.status is None else _status(done.status, done.output())
    return ScriptResult(status, done.status, done.output(_TAIL), done.errors(_TAIL), done.seconds)


class ScriptForks:
    """Runs scripts in forks of interpreters that have imported the compiler, which is most of a short script's time.

    There is one interpreter for each Python. A fork differs from a fresh process in what its parent has loaded, and
    some compilers hang in forks. So a run that shows the bug counts, and one that does not counts for nothing.
    """

    def __init__(self) -> None:
        self.cpu_seconds = 0.0
        """CPU time of the scripts so far, which the kernel does not add to that of this process."""
        self._servers: dict[str, Conversation] = {}

    def __enter__(self) -> "ScriptForks":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        while self._servers:
            self._servers.popitem()[1].end(0)

    def run(self, path: Path, python: str | Path | None, seconds: float) -> ScriptResult | None:
        """Run the script at `path` in a fork under `python` for at most `seconds`; None when its server has died."""
        name = str(python or sys.executable)
        if name not in self._servers:
            self._servers[name] = Conversation([name, "-I", str(_SERVER)])
        server = self._servers[name]
        with TemporaryDirectory(prefix="miscompile-") as place:
            output, errors = Path(place) / "output", Path(place) / "errors"
            request = {"script": str(path), "output": str(output), "errors": str(errors), "seconds": seconds}
            server.write(json.dumps(request).encode() + b"\n")
            answer = server.read_line(seconds + _IMPORT_SECONDS)
            if answer is None:
                self._servers.pop(name).end(0)
                return None
            done: dict[str, Any] = json.loads(answer)
            self.cpu_seconds += done["cpu"]
            printed, told = (file.read_text("utf-8", "replace") if file.exists() else "" for file in (output, errors))
        status = "broken" if done["status"] is None else _status(done["status"], printed)
        return ScriptResult(status, done["status"], printed[-_TAIL:], told[-_TAIL:], done["seconds"])


def confirm(
    path: Path,
    python: str | Path | None = None,
    seconds: float = 60,
    times: int = _TIMES,
    forks: ScriptForks | None = None,
) -> tuple[ScriptResult, ...]:
    """Run the script up to `times` times; stop after the first run that does not show the bug.

    With `forks` all runs but the last two are forks, unless a fork does not show the bug: then all are fresh processes.
    Two fresh processes, because a fork begins with what its parent has left in memory, and a bug that reads
    uninitialised memory shows there more often than for a user.
    """
    results: list[ScriptResult] = []
    while forks is not None and len(results) < times - _FRESH:
        forked = forks.run(path, python, seconds)
        if forked is None or forked.status != "shows":
            results.clear()
            break
        results.append(forked)
    while len(results) < times and all(result.status == "shows" for result in results):
        results.append(run_script(path, python, seconds))
    return tuple(results)


def shows_once(path: Path, python: str | Path | None, seconds: float, forks: ScriptForks | None) -> bool:
    """Tell whether one run of the script shows the bug; a fresh process decides when a fork does not show it."""
    forked = None if forks is None else forks.run(path, python, seconds)
    if forked is not None and forked.status == "shows":
        return True
    return run_script(path, python, seconds).status == "shows"


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
