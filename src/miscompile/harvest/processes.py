"""Shared parts of child processes that run test files: folder, environment, and end."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from miscompile.base.errors import UsageError

LOG = "output.txt"
"""The file in a child's folder that gets what it prints."""

ENVIRONMENT: Mapping[str, str] = {
    "HF_HUB_OFFLINE": "1",  # tests that load weights would wait for the network
    "TRANSFORMERS_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
}

_ROOT_MARKS = ("pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg", ".git")


def need(packages: Mapping[str, str], what: str) -> None:
    """Raise UsageError that says what to install when a package that `what` needs is missing.

    `packages` maps the name to import to the name to install.
    """
    missing = [name for module, name in packages.items() if find_spec(module) is None]
    if missing:
        raise UsageError(f"{what} needs {' and '.join(missing)}: pip install {' '.join(missing)}")


def home_of(path: Path) -> Path:
    """Return the folder in which a test's authors run it: the nearest folder above with project settings."""
    for folder in path.parents:
        if any((folder / mark).exists() for mark in _ROOT_MARKS):
            return folder
    return path.parent


def last_line(log: Path) -> str:
    """Return the last line that mentions an error, or else the last line, up to 200 characters."""
    lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    told = [line for line in lines if "Error" in line or "Fatal" in line] or lines
    return told[-1][:200] if told else "it said nothing"
