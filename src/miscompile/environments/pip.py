"""pip and venv as child processes: their output goes to a log, its last lines into error messages."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from miscompile.base.child import attend, start
from miscompile.base.errors import UsageError
from miscompile.base.versions import is_final, is_version, order
from miscompile.core.events import ProgressListener
from miscompile.environments.cache import executable_of
from miscompile.environments.interpreters import Interpreter

_DISTURBING = {
    "PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_USER",
    "PIP_PYTHON", "PIP_REQUIRE_VIRTUALENV", "PIP_DRY_RUN",
}  # fmt: skip
_FLAGS = ("--no-input", "--disable-pip-version-check", "--no-color")
WHEELS_ONLY = ("--only-binary", ":all:")
"""Options that exclude source distributions, because building a compiler or numpy takes hours or fails."""

_TELL_EVERY = 15.0
_LAST_WORDS = 300
_AVAILABLE = re.compile(r"^Available versions:\s*(.+)$", re.MULTILINE)
_FROM = re.compile(r"\(from versions: ([^)]*)\)")
_FEW = 5


def clean(environment: Mapping[str, str]) -> dict[str, str]:
    """Return `environment` without variables that redirect where another Python loads or installs packages."""
    return {name: value for name, value in environment.items() if name not in _DISTURBING}


def make_venv(python: Interpreter, path: Path, log: Path) -> None:
    """Make an empty virtual environment with pip in it. Raises UsageError when that fails."""
    if _run([python.path, "-I", "-m", "venv", str(path)], log):
        raise UsageError(f"Python {python.version} makes no virtual environment: {printed_last(log)} (log: {log})")


def install(path: Path, requirements: Sequence[str], log: Path, on_progress: ProgressListener, wanted_by: str) -> None:
    """Have pip install `requirements` in the environment at `path`; `on_progress` receives lines about long downloads.

    Raises UsageError with pip's last lines; `wanted_by` names in it the part to install.
    """
    command = [*_pip(str(executable_of(path))), "install", *_FLAGS, *WHEELS_ONLY, *requirements]
    if _run(command, log, on_progress):
        raise UsageError(f"{wanted_by} cannot be installed: {printed_last(log)} (log: {log})")


def releases(distribution: str, python: Interpreter) -> list[str]:
    """Return the final releases of a distribution that have wheels for `python`, the oldest first.

    pip asks the indexes that it is configured for. Raises UsageError when there are none, or pip fails.
    """
    with TemporaryDirectory(prefix="miscompile-") as place:
        log = Path(place) / "pip.log"
        executable = python.path
        if _run([*_pip(executable), "--version"], log):  # a Python without pip
            make_venv(python, Path(place) / "venv", log)
            executable = str(executable_of(Path(place) / "venv"))
        log.unlink(missing_ok=True)
        failed = _run([*_pip(executable), "index", "versions", *_FLAGS, *WHEELS_ONLY, distribution], log)
        text = log.read_text("utf-8", errors="replace")
        found = final_releases(text)
        if failed or not found:
            raise UsageError(
                f"the releases of {distribution} cannot be listed: {printed_last(log) or 'there are none'}"
            )
    return found


def final_releases(text: str) -> list[str]:
    """Return the final releases in the output of `pip index versions`, the oldest first."""
    listed = _AVAILABLE.search(text)
    names = [name.strip() for name in listed[1].split(",")] if listed else []
    return sorted({name for name in names if is_version(name) and is_final(name)}, key=order)


def printed_last(log: Path) -> str:
    """Return in one line why pip or venv failed, according to its log."""
    try:
        text = log.read_text("utf-8", errors="replace")
    except OSError:
        return ""
    lines = [" ".join(line.split()) for line in text.splitlines() if line.strip()]
    errors = [line.partition("ERROR:")[2].strip() for line in lines if "ERROR:" in line]
    said = "; ".join(errors[-2:]) or " ".join(lines[-2:])
    return _FROM.sub(_few, said)[-_LAST_WORDS:]


def _few(found: "re.Match[str]") -> str:
    names = [name.strip() for name in found[1].split(",")]
    if len(names) <= _FEW:
        return found[0]
    return f"(there are {len(names)} versions, the newest: {', '.join(names[-_FEW:])})"


def _pip(executable: str) -> list[str]:
    return [executable, "-P", "-m", "pip"]


def _run(command: Sequence[str], log: Path, on_progress: ProgressListener | None = None) -> int:
    """Run a command with its output appended to `log`; return its exit status. The command is killed if this process is
    interrupted.
    """
    try:
        with log.open("ab") as out:
            process = start(command, stdout=out, stderr=out, environment=clean(os.environ))
    except OSError as error:
        raise UsageError(f"{command[0]} cannot be started: {error.strerror or error} (log: {log})") from None
    look = None if on_progress is None else lambda: on_progress(f"  pip: {_last_line(log)}")
    status = attend(process, every=_TELL_EVERY, look=look)
    assert status is not None, "it has all the time that it needs"
    return status


def _last_line(log: Path) -> str:
    lines = log.read_text("utf-8", errors="replace").replace("\r", "\n").split("\n")
    said = next((line for line in reversed(lines) if line.strip()), "")
    return " ".join(said.split())[:100]
