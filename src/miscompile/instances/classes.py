"""Classes of instances: what each parameter of an instance is like, in few words, and their pairs.

A factor is one aspect of an instance (`X.rank`, `axis`), and has one class in each instance. A harvest of neighbours
writes the classes of the instances that a library runs beside its archive.
"""

import json
from collections.abc import Iterable, Mapping
from itertools import combinations_with_replacement
from pathlib import Path

from miscompile.base.errors import UsageError

Classes = Mapping[str, Mapping[str, str]]
"""The class of each factor, by the digest of the instance."""

Item = tuple[str, str]
"""A factor with its class."""

ClassPair = tuple[Item, Item]
"""Two classes of one instance, in order; the same one twice stands for the class alone."""

OPERATOR = "(operator)"
"""The factor whose class is the operator; it is in no pair."""


def pairs_of(found: Mapping[str, str]) -> frozenset[ClassPair]:
    """Return the pairs of an instance's classes; the same one twice stands for the class alone."""
    return frozenset(combinations_with_replacement(sorted(found.items()), 2))


def classes_beside(archive: Path) -> Path:
    """Return the path of the classes of the archive at `archive`: the archive's with the ending `.classes.json`."""
    return archive.with_name(archive.name.removesuffix(".gz").removesuffix(".jsonl") + ".classes.json")


def write_classes(classes: Classes, archive: Path) -> None:
    """Write classes beside an archive. Raises UsageError when that is not possible."""
    path = classes_beside(archive)
    try:
        path.write_text(json.dumps(dict(classes), separators=(",", ":")), "utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None


def read_classes(archives: Iterable[Path]) -> Classes:
    """Return the classes beside archives, none for archives without. Raises UsageError for a damaged file."""
    found: dict[str, Mapping[str, str]] = {}
    for path in map(classes_beside, archives):
        if not path.exists():
            continue
        try:
            found |= json.loads(path.read_text("utf-8"))
        except (OSError, ValueError, TypeError) as error:
            raise UsageError(f"{path} holds no classes of instances ({error}); harvest anew") from None
    return found
