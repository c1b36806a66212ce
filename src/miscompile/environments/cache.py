"""The cache of environments: `<user cache>/miscompile/environments/<target>-<version>`.

An environment is complete when its record (`environment.json`) exists; it is written last and removed first. Any other
folder in the cache is left over from an interruption, and the next process that makes or removes the environment
deletes it.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from miscompile.base.errors import UsageError
from miscompile.base.versions import order, same_version
from miscompile.core.events import ProgressListener

RECORD = "environment.json"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment with one version of one compiler.

    `python` is the version of its interpreter, `requirements` the arguments of pip, `packages` the installed
    distributions with their versions, `size` the bytes on disk, `seconds` the time to make it. `bare`: it also serves
    the target's name without a version.
    """

    name: str
    target: str
    version: str
    python: str
    path: Path
    requirements: tuple[str, ...]
    packages: Mapping[str, str]
    size: int = 0
    seconds: float = 0.0
    bare: bool = False

    @property
    def executable(self) -> Path:
        """Its interpreter."""
        return executable_of(self.path)

    def as_json(self) -> dict[str, Any]:
        """Return the record as JSON values."""
        return {**asdict(self), "path": str(self.path), "requirements": list(self.requirements)}


def executable_of(path: Path) -> Path:
    """Return the interpreter of the virtual environment at `path`."""
    return path / "bin" / "python"


def cache_folder() -> Path:
    """Return the folder of all environments; it need not exist."""
    return user_cache_path("miscompile") / "environments"


def name_of(target: str, version: str) -> str:
    """Return the name of an environment, which is also that of its folder."""
    return f"{target}-{version.lower()}"


def find(target: str, version: str) -> Environment | None:
    """Return the environment with this version (`1.20` finds `1.20.0`), None when it has not been made."""
    exact = load(cache_folder() / name_of(target, version))
    if exact is not None:
        return exact
    return next((one for one in environments() if one.target == target and same_version(one.version, version)), None)


def find_bare(target: str) -> Environment | None:
    """Return the environment that serves `target` named without a version, the newest when there are several."""
    serving = [one for one in environments() if one.target == target and one.bare]
    return max(serving, key=lambda one: order(one.version), default=None)


def environments() -> list[Environment]:
    """Return all complete environments, sorted by target and version."""
    try:
        places = list(cache_folder().iterdir())
    except OSError:
        return []
    found = [one for one in map(load, places) if one is not None]
    return sorted(found, key=lambda one: (one.target, order(one.version)))


def load(path: Path) -> Environment | None:
    """Return the environment at `path`, None when it is absent, incomplete or damaged, or its Python is gone."""
    try:
        data = json.loads((path / RECORD).read_text("utf-8"))
        if data.pop("format") != _FORMAT or not os.access(executable_of(path), os.X_OK):
            return None
        found = Environment(**{**data, "path": path, "requirements": tuple(data["requirements"])})
        order(found.version)
    except (OSError, ValueError, KeyError, TypeError, UsageError):
        return None
    return found


def save(environment: Environment) -> None:
    """Write the record, which makes an environment complete."""
    data = {"format": _FORMAT, **environment.as_json()}
    place = environment.path / RECORD
    temporary = place.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(json.dumps(data, indent=2, sort_keys=True) + "\n", "utf-8")
    temporary.replace(place)


def serve_bare(environment: Environment) -> Environment:
    """Let `environment` serve its target's name without a version, in place of the others of this target."""
    for one in environments():
        if one.target == environment.target and one.bare != (one.name == environment.name):
            save(replace(one, bare=not one.bare))
    return replace(environment, bare=True)


def remove(name: str, on_progress: ProgressListener) -> bool:
    """Remove an environment, or the remains of one; False when there was nothing.

    Raises UsageError when it cannot be removed.
    """
    with locked(name, on_progress):
        present = (cache_folder() / name).exists()
        clear(name)
    return present


def leftovers() -> list[str]:
    """Return the names of entries of the cache other than complete environments: folders, and logs of failures."""
    try:
        places = list(cache_folder().iterdir())
    except OSError:
        return []
    folders = {place.name for place in places if place.is_dir() and load(place) is None}
    return sorted(folders | {place.stem for place in places if place.suffix == ".log"})


def clear(name: str) -> None:
    """Remove the folder and the log of an environment whose lock is held. Raises UsageError when that fails."""
    path = cache_folder() / name
    try:
        with suppress(FileNotFoundError):
            (path / RECORD).unlink()
        if path.exists():
            shutil.rmtree(path)
        log_of(name).unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"environment {name} cannot be removed from {cache_folder()}: {_reason(error)}") from None


def log_of(name: str) -> Path:
    """Return the path of pip's log while an environment is made; it stays when that fails."""
    return cache_folder() / f"{name}.log"


@contextmanager
def locked(name: str, on_progress: ProgressListener) -> Iterator[None]:
    """Hold the lock of one environment inside this block; waits for another process that holds it.

    Raises UsageError when the cache cannot be written.
    """
    try:
        cache_folder().mkdir(parents=True, exist_ok=True)
        descriptor = os.open(cache_folder() / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise UsageError(
            f"environments cannot be kept in {cache_folder()}: {_reason(error)}; "
            "set XDG_CACHE_HOME to a folder that can be written"
        ) from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_progress(f"another process is making or removing {name}; waiting for it")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
