"""Pythons on this machine that an environment can be made with."""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from miscompile.base.child import collect
from miscompile.base.errors import UsageError
from miscompile.base.versions import order, satisfies

OLDEST = (3, 11)
"""The oldest Python that the worker's code supports."""

_NEWEST = 20
_SECONDS = 20.0
_ASK = "import sys; print('.'.join(map(str, sys.version_info[:3])))"


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python: the path of its executable, and its version such as `3.12.1`."""

    path: str
    version: str


def own() -> Interpreter:
    """Return the Python that runs this tool."""
    return Interpreter(sys.executable, ".".join(map(str, sys.version_info[:3])))


def choose(conditions: str, wanted_by: str) -> Interpreter:
    """Return a Python that meets `conditions` (such as `<3.12`): our own, else another that is installed here.

    Others are looked for as `python3.N` on the PATH and under pyenv, the newest first. Raises UsageError when there is
    none; `wanted_by` names in the message the part that needs the Python.
    """
    first = own()
    if meets(first.version, conditions):
        return first
    for minor in range(_NEWEST, OLDEST[1] - 1, -1):
        if not meets(f"{OLDEST[0]}.{minor}", conditions):
            continue
        for path in candidates(minor):
            version = ask(path)
            if version is not None and order(version)[1][:2] == (OLDEST[0], minor) and meets(version, conditions):
                return Interpreter(path, version)
    raise UsageError(
        f"{wanted_by} needs a Python {conditions} (and at least {OLDEST[0]}.{OLDEST[1]}), this one is {first.version} "
        "and there is no other; install one as python3.N on the PATH or with pyenv"
    )


def meets(version: str, conditions: str) -> bool:
    """Tell whether Python `version` meets `conditions` on its minor release: 3.12.1 is not newer than 3.12."""
    minor = ".".join(version.split(".")[:2])
    return satisfies(minor, f">={OLDEST[0]}.{OLDEST[1]}") and satisfies(minor, conditions)


def candidates(minor: int) -> Iterator[str]:
    """Yield paths of executables that may be Python 3.`minor`."""
    name = f"python{OLDEST[0]}.{minor}"
    for folder in os.get_exec_path():
        path = Path(folder) / name
        if folder and os.access(path, os.X_OK):
            yield str(path)
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for path in sorted(root.glob(f"{OLDEST[0]}.{minor}.*/bin/{name}"), reverse=True):
        yield str(path)


def ask(path: str) -> str | None:
    """Return the version that an executable reports; None when it does not run (a shim without a Python)."""
    try:
        done = collect([path, "-I", "-c", _ASK], seconds=_SECONDS)
    except OSError:
        return None
    return done.output().strip() if done.status == 0 else None
