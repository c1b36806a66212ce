"""Archives of instances: a header line with their origin, then one line of JSON each; gzipped.

The header also holds the parents of neighbours, each once, and a neighbour names the digest of its own. An archive
without them is read as well.

An archive is written under another name and then renamed, so that an interrupted harvest leaves the old one.
"""

import gzip
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from errno import EISDIR
from pathlib import Path
from typing import Any

from miscompile.base.errors import UsageError
from miscompile.instances.code import decoded, digest_of, parent_from, parent_json, referring
from miscompile.instances.instance import Instance, Parent
from miscompile.instances.program import slots

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Archive:
    """Instances of one library.

    `versions` are those of the harvested distributions, `figures` the counts of the harvest.
    """

    library: str
    instances: tuple[Instance, ...]
    versions: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, Any] = field(default_factory=dict)

    @property
    def stopped(self) -> bool:
        """Tell whether the harvest was interrupted, so that the archive is incomplete."""
        return bool(self.figures.get("stopped"))


def write_archive(archive: Archive, path: Path) -> None:
    """Write an archive to `path` (`.jsonl.gz`). Raises UsageError when that is not possible."""
    head = {
        "schema": SCHEMA,
        "library": archive.library,
        "versions": dict(archive.versions),
        "figures": dict(archive.figures),
    }
    parents = {digest_of(one.parent.instance): one.parent for one in archive.instances if one.parent}
    if parents:
        head["parents"] = {digest: parent_json(one) for digest, one in parents.items()}
    with _fresh(path) as fresh:
        with gzip.GzipFile(fresh, "wb", mtime=0) as file:
            file.write(json.dumps(head).encode() + b"\n")
            for instance in archive.instances:
                file.write(referring(instance) + b"\n")
        fresh.replace(path)


def check_place(path: Path) -> None:
    """Raise UsageError as `write_archive` does when no archive can be written to `path`; leave nothing there.

    Callers use it before long work whose result could not be stored otherwise.
    """
    missing = [folder for folder in path.parents if not folder.exists()]
    try:
        with _fresh(path) as fresh:
            fresh.touch()
            if path.is_dir():
                raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
    finally:
        for folder in missing:  # the innermost comes first
            with suppress(OSError):  # it was not created, or is in use already
                folder.rmdir()


@contextmanager
def _fresh(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`; remove it at the end. Turns OSError into UsageError."""
    fresh = path.with_name(f".new-{os.getpid()}-{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield fresh
        finally:
            fresh.unlink(missing_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"cannot write {path}: {reason}; choose another place for the instances") from None


def read_archive(path: Path) -> Archive:
    """Read an archive. Raises UsageError when it is not there, of another schema, or damaged, which names the line."""
    with _reading(path) as (head, file):
        library = head["library"]
        parents = _parents(head)
        instances = tuple(
            _read(line, library, f"{path}, line {number}", parents) for number, line in enumerate(file, 2)
        )
        return Archive(str(library), instances, dict(head["versions"]), dict(head["figures"]))


def library_in(path: Path) -> str:
    """Return the library whose instances an archive holds. Raises UsageError as `read_archive` does."""
    with _reading(path) as (head, _):
        return str(head["library"])


@contextmanager
def _reading(path: Path) -> Iterator[tuple[dict[str, Any], gzip.GzipFile]]:
    """Open an archive; yield its header and the rest of the file. Turns errors into UsageError."""
    try:
        with gzip.open(path, "rb") as file:
            head = json.loads(file.readline())
            if head["schema"] != SCHEMA:
                raise UsageError(f"{path} has schema {head['schema']}, this miscompile reads {SCHEMA}; harvest anew")
            yield head, file
    except FileNotFoundError:
        raise UsageError(f"there are no instances at {path}; `miscompile harvest` makes them") from None
    except (OSError, EOFError, ValueError, KeyError, TypeError, zlib.error) as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        raise UsageError(f"{path} is no archive of instances ({reason}); harvest anew") from None


def _parents(head: Mapping[str, Any]) -> dict[str, Parent]:
    return {str(digest): parent_from(one) for digest, one in head.get("parents", {}).items()}


def _read(line: bytes, library: object, place: str, parents: Mapping[str, Parent]) -> Instance:
    """Return the instance of a line. Raises UsageError that begins with `place` for a line that is none of these."""
    try:
        found = decoded(line, parents)
    except UsageError as error:
        raise UsageError(f"{place}: {error}; harvest anew") from None
    if found.library != library:
        raise UsageError(f"{place}: an instance of {found.library} in an archive of {library}; harvest anew")
    if slots(found):
        raise UsageError(f"{place}: this is a program with inputs to be filled, no instance; harvest anew")
    return found


def distinct(instances: Iterable[Instance]) -> Iterator[Instance]:
    """Yield the instances of distinct content, in order."""
    met: set[str] = set()
    for instance in instances:
        digest = digest_of(instance)
        if digest not in met:
            met.add(digest)
            yield instance
