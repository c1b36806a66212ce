"""Where instances come from: the libraries' own tests, harvested once for each version, and archives that one names.

A harvest takes minutes, so what it gives is kept in the user's cache, under the versions that it is from.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from platformdirs import user_cache_path

from miscompile.base.digest import digest_words
from miscompile.base.errors import UsageError
from miscompile.base.progress import ProgressListener
from miscompile.harvest.libraries.keras import harvest_first, harvest_keras, harvest_keras_tests
from miscompile.harvest.libraries.onnx import harvest_onnx
from miscompile.harvest.libraries.torch import harvest_database, harvest_tests
from miscompile.instances.archive import Archive, read_archive, write_archive
from miscompile.instances.instance import Instance
from miscompile.instances.sequence import layer_of
from miscompile.targets.front_ends import reference_of
from miscompile.targets.registry import parse_target, versions

FORMATS: Mapping[str, int] = {"onnx": 1, "torch": 1, "keras": 2}
"""Of each library; grows when its harvest takes other instances than before, so that older archives are not used any
longer."""

_FILED = frozenset({"keras"})
"""Libraries whose own tests are files."""


def harvest_own(library: str, say: ProgressListener, seconds: float = 600.0) -> Archive:
    """Harvest a library's own tests; where they are files, each may take `seconds`. May be cut short: see `stopped`."""
    if library == "onnx":
        return harvest_onnx(say)
    return harvest_database(say) if library == "torch" else harvest_keras(say, seconds=seconds)


def harvest_at(library: str, path: Path, say: ProgressListener, seconds: float) -> Archive:
    """Harvest the tests at `path` that use torch or Keras, of which each file may take `seconds`. Raises UsageError."""
    return (harvest_tests if library == "torch" else harvest_keras_tests)(path, say, seconds)


def place_of(library: str) -> Path:
    """Return where the instances of a library's own tests are kept. Raises UsageError when it is not installed."""
    found = versions(parse_target(reference_of(library)).about)
    words = [word for name, version in sorted(found.items()) for word in (name, version)]
    digest = digest_words(FORMATS[library], *words)
    return user_cache_path("miscompile") / "instances" / f"{library}-{digest:016x}.jsonl.gz"


def harvested(library: str, say: ProgressListener) -> Path | None:
    """Return the archive of a library's own tests if there is one already; else None, with a line about it.

    Raises UsageError when the library is not installed.
    """
    place = place_of(library)
    if place.exists():
        return place
    say(f"without instances of {library}'s own tests to begin from; `miscompile harvest {library}` makes them")
    return None


def own_instances(library: str, say: ProgressListener) -> Archive:
    """Return the instances of a library's own tests, harvesting them (with a line about it) on first use.

    Raises KeyboardInterrupt when the harvest was interrupted: a part of it would be taken for the whole from then on.
    """
    place = place_of(library)
    if place.exists():
        return read_archive(place)
    say(f"harvesting operator instances from the tests of {library} (once per version)")
    archive = harvest_first(say) if library == "keras" else harvest_own(library, say)  # all of Keras takes an hour
    if archive.stopped:
        raise KeyboardInterrupt
    if library not in _FILED and _cut_short(archive):
        for note in archive.figures.get("notes", ()):
            say(str(note))
        say(f"what there is of {library} is used, and not kept; `miscompile harvest {library}` tries again")
        return archive
    write_archive(archive, place)
    return archive


def _cut_short(archive: Archive) -> bool:
    """Tell whether a process of the harvest died or ran out of time, so that this may be a part of what there is."""
    files = archive.figures.get("files", {})
    return bool(files.get("died") or files.get("time"))


def instances_of(library: str, archives: Sequence[Path], say: ProgressListener) -> Iterator[Instance]:
    """Yield the instances of a library: those in `archives` if there are any, else those of its own tests.

    Raises UsageError for a file that is no archive, or when none of them is of this library.
    """
    if not archives:
        yield from own_instances(library, say).instances
        return
    read = [read_archive(path) for path in archives]
    mine = [archive for archive in read if archive.library == library]
    if not mine:
        has = ", ".join(sorted({archive.library for archive in read}))
        raise UsageError(f"the archives hold instances of {has}, none of {library}; leave it out with --from")
    for archive in mine:
        yield from archive.instances


def of_operators(instances: Sequence[Instance], names: Sequence[str]) -> tuple[Instance, ...]:
    """Return the instances of the operators called `names`: by path, or its last part; all without names."""
    return tuple(one for one in instances if not names or any(_named(name, one) for name in names))


def check_operators(names: Sequence[str], instances: Sequence[Instance], libraries: Sequence[str]) -> None:
    """Raise UsageError for a name that no instance has: a misspelt operator must not look like one without bugs."""
    missing = [name for name in names if not any(_named(name, one) for one in instances)]
    if missing:
        has = " or ".join(libraries)
        raise UsageError(f"no instance of {has} is of {', '.join(missing)}; give names as in torch.nn.Conv2d, Resize")


def _named(name: str, instance: Instance) -> bool:
    """Tell whether an instance is of the operator called `name`; a layer in a sequence is still that layer."""
    layer = layer_of(instance)
    return name in (instance.api, instance.operator, layer.api, layer.operator)
