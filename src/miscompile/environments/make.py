"""Making an environment: a virtual environment, pip, and finally the record that marks it complete."""

import json
import os
import time
from pathlib import Path

from miscompile.base.child import collect
from miscompile.base.errors import UsageError
from miscompile.core.events import ProgressListener
from miscompile.environments import pip
from miscompile.environments.cache import Environment, cache_folder, clear, executable_of, load, locked, log_of, save
from miscompile.environments.interpreters import choose
from miscompile.environments.recipe import EnvironmentRecipe

_LIST = (
    "import json; from importlib.metadata import distributions;"
    "print(json.dumps({d.metadata['Name']: d.version for d in reversed(list(distributions()))}))"
)
"""Prints the installed distributions; of two with one name, the one that an import would find."""


def make(recipe: EnvironmentRecipe, on_progress: ProgressListener) -> Environment:
    """Return the environment of `recipe`, making it if necessary; `on_progress` receives lines of progress.

    Two processes never make the same one: the second waits and uses the result of the first. If this ends early, even
    by an interrupt, no environment remains. Raises UsageError when the cache cannot be written, no Python fits, or pip
    fails.
    """
    path = cache_folder() / recipe.name
    with locked(recipe.name, on_progress):
        found = load(path)
        if found is not None:
            return found
        clear(recipe.name)
        try:
            return _make(recipe, path, on_progress)
        except OSError as error:
            _discard(path)
            raise UsageError(f"environment {recipe.name} cannot be made: {error.strerror or error}") from None
        except BaseException:
            _discard(path)
            raise


def _make(recipe: EnvironmentRecipe, path: Path, on_progress: ProgressListener) -> Environment:
    began = time.monotonic()
    python = choose(recipe.python, recipe.spec)
    log = log_of(recipe.name)
    on_progress(f"making an environment for {recipe.spec} with Python {python.version} (once)")
    pip.make_venv(python, path, log)
    pip.install(path, recipe.requirements, log, on_progress, recipe.spec)
    packages, size = _packages(path), _size(path)
    log.replace(path / "pip.log")
    seconds = time.monotonic() - began
    made = Environment(
        recipe.name, recipe.target, recipe.version, python.version, path, recipe.requirements, packages, size, seconds
    )
    save(made)
    on_progress(f"{recipe.spec} is ready after {seconds:.0f} s ({size >> 20} MiB in {path})")
    return made


def _discard(path: Path) -> None:
    """Remove a half-made environment; its log stays, because the error points to it."""
    log = log_of(path.name)
    text = log.read_bytes() if log.exists() else None
    clear(path.name)
    if text is not None:
        log.write_bytes(text)


def _packages(path: Path) -> dict[str, str]:
    """Return what is installed at `path`, by its own Python."""
    done = collect([str(executable_of(path)), "-I", "-c", _LIST])
    if done.status:
        raise UsageError(f"the Python of {path} does not run: {' '.join(done.errors().split())[-200:]}")
    found: dict[str, str] = json.loads(done.stdout)
    return dict(sorted(found.items()))


def _size(path: Path) -> int:
    """Return the bytes that a folder takes on disk."""
    return sum((Path(folder) / name).lstat().st_blocks * 512 for folder, _, names in os.walk(path) for name in names)
