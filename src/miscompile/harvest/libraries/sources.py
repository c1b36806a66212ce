"""Sources of instances: the libraries' own tests, harvested once for each version, and archives named by the user.

A harvest takes minutes, so its result is cached in the user's cache folder under the versions of the library.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from platformdirs import user_cache_path

from miscompile.base.digest import digest_words
from miscompile.base.errors import UsageError
from miscompile.core.events import ProgressListener
from miscompile.harvest.libraries.keras import harvest_first, harvest_keras, harvest_keras_tests
from miscompile.harvest.libraries.onnx import harvest_onnx
from miscompile.harvest.libraries.torch import harvest_database, harvest_tests
from miscompile.instances.archive import Archive, read_archive, write_archive
from miscompile.instances.instance import Instance
from miscompile.instances.sequence import layer_of
from miscompile.targets.front_ends import reference_of
from miscompile.targets.registry import parse_target, versions

FORMATS: Mapping[str, int] = {"onnx": 2, "torch": 1, "keras": 2}
"""The version of each library's harvest; it is increased when the harvest finds other instances, so that older
archives are not used any longer."""

_FILED = frozenset({"keras"})
"""Libraries with test files of their own."""


def harvest_own(library: str, on_progress: ProgressListener, seconds: float = 600.0) -> Archive:
    """Harvest a library's own tests; `seconds` is the timeout of a test file. The figure `stopped` tells of an
    interruption."""
    if library == "onnx":
        return harvest_onnx(on_progress)
    return harvest_database(on_progress) if library == "torch" else harvest_keras(on_progress, seconds=seconds)


def harvest_at(library: str, path: Path, on_progress: ProgressListener, seconds: float) -> Archive:
    """Harvest the tests at `path` that use torch or Keras, with a timeout of `seconds` per file. Raises UsageError."""
    return (harvest_tests if library == "torch" else harvest_keras_tests)(path, on_progress, seconds)


def place_of(library: str) -> Path:
    """Return the path of the cached instances of a library's own tests. Raises UsageError when it is not installed."""
    found = versions(parse_target(reference_of(library)).about)
    words = [word for name, version in sorted(found.items()) for word in (name, version)]
    digest = digest_words(FORMATS[library], *words)
    return user_cache_path("miscompile") / "instances" / f"{library}-{digest:016x}.jsonl.gz"


def harvested(library: str, on_progress: ProgressListener) -> Path | None:
    """Return the cached archive of a library's own tests; without one return None, and report that to the user.

    Raises UsageError when the library is not installed.
    """
    place = place_of(library)
    if place.exists():
        return place
    on_progress(f"without instances of {library}'s own tests to begin from; `miscompile harvest {library}` makes them")
    return None


def own_instances(library: str, on_progress: ProgressListener) -> Archive:
    """Return the instances of a library's own tests, harvesting them (with a message) on first use.

    Raises KeyboardInterrupt when the harvest was interrupted, because the cache must not contain a partial harvest.
    """
    place = place_of(library)
    if place.exists():
        return read_archive(place)
    on_progress(f"harvesting operator instances from the tests of {library} (once per version)")
    archive = (
        harvest_first(on_progress) if library == "keras" else harvest_own(library, on_progress)
    )  # all of Keras takes an hour
    if archive.stopped:
        raise KeyboardInterrupt
    if library not in _FILED and _cut_short(archive):
        for note in archive.figures.get("notes", ()):
            on_progress(str(note))
        on_progress(f"what there is of {library} is used, and not kept; `miscompile harvest {library}` tries again")
        return archive
    write_archive(archive, place)
    return archive


def _cut_short(archive: Archive) -> bool:
    """Tell whether a process of the harvest crashed or exceeded its timeout, so that instances may be missing."""
    files = archive.figures.get("files", {})
    return bool(files.get("died") or files.get("time"))


def instances_of(library: str, archives: Sequence[Path], on_progress: ProgressListener) -> Iterator[Instance]:
    """Yield the instances of a library from `archives`, or from its own tests when there are no archives.

    Raises UsageError for a file that is not an archive, or when the archives contain no instance of this library.
    """
    if not archives:
        yield from own_instances(library, on_progress).instances
        return
    read = [read_archive(path) for path in archives]
    mine = [archive for archive in read if archive.library == library]
    if not mine:
        has = ", ".join(sorted({archive.library for archive in read}))
        raise UsageError(f"the archives hold instances of {has}, none of {library}; leave it out with --from")
    for archive in mine:
        yield from archive.instances


def of_operators(instances: Sequence[Instance], names: Sequence[str]) -> tuple[Instance, ...]:
    """Return the instances of the operators called `names` (paths, or the last parts of paths); without names, all
    of them."""
    return tuple(one for one in instances if not names or any(_named(name, one) for name in names))


def check_operators(names: Sequence[str], instances: Sequence[Instance], libraries: Sequence[str]) -> None:
    """Raise UsageError for a name without instances, because a misspelt operator must not look like one without
    bugs."""
    missing = [name for name in names if not any(_named(name, one) for one in instances)]
    if missing:
        has = " or ".join(libraries)
        raise UsageError(f"no instance of {has} is of {', '.join(missing)}; give names as in torch.nn.Conv2d, Resize")


def _named(name: str, instance: Instance) -> bool:
    """Tell whether an instance is of the operator called `name`; a layer in a sequence counts."""
    layer = layer_of(instance)
    return name in (instance.api, instance.operator, layer.api, layer.operator)
