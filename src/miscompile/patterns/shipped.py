"""All patterns that ship with the tool: the motifs of the catalogue, with their observed triggers, and mined ones."""

from collections.abc import Collection, Iterator
from functools import cache
from importlib.resources import as_file, files

from miscompile.base.errors import SpecError
from miscompile.patterns.language import Motif, parse_motifs
from miscompile.patterns.library import read_library
from miscompile.patterns.pattern import Granularity, Pattern, Trigger
from miscompile.patterns.triggers import ObservedTriggers, granularities, known_targets, shipped

_DATA = files("miscompile.patterns").joinpath("data")


@cache
def catalogue() -> tuple[Motif, ...]:
    """Return every motif, in order of file and place. Two motifs of one name are an error."""
    found: dict[str, Motif] = {}
    for entry in sorted(_DATA.iterdir(), key=lambda entry: entry.name):
        if not entry.name.endswith(".motif"):
            continue
        for motif in parse_motifs(entry.read_text("utf-8"), entry.name):
            if motif.name in found:
                raise SpecError(f"{entry.name}: there are two motifs called {motif.name}")
            found[motif.name] = motif
    return tuple(found.values())


@cache
def fusion_motifs() -> tuple[Motif, ...]:
    """Return the motifs that optimisers fuse."""
    return tuple(motif for motif in catalogue() if not motif.noop)


@cache
def noop_motifs() -> tuple[Motif, ...]:
    """Return the motifs that change nothing."""
    return tuple(motif for motif in catalogue() if motif.noop)


def patterns_of(targets: Collection[str] | None = None) -> tuple[Pattern, ...]:
    """Return the catalogue as patterns, in its order, with the passes that they trigger on `targets` (None: all with a
    table).

    A pattern is a block when some pass that it triggers works on blocks, or when it triggers none, because motifs are
    written as one contiguous region. Otherwise it is a subgraph.
    """
    tables = [found for name in targets or known_targets() if (found := shipped(name)) is not None]
    return tuple(
        Pattern(
            motif.name, None, motif, _granularity(motif.name, tables), tuple(_triggers(motif.name, tables)), "catalogue"
        )
        for motif in catalogue()
    )


def _triggers(name: str, tables: Collection[ObservedTriggers]) -> Iterator[Trigger]:
    for table in tables:
        for one in table.seen.get(name, ()):
            yield Trigger(table.target, table.version, one)


def _granularity(name: str, tables: Collection[ObservedTriggers]) -> Granularity:
    kinds = {granularities(table.target).get(one) for table in tables for one in table.seen.get(name, ())}
    return "subgraph" if "subgraph" in kinds and "block" not in kinds else "block"


@cache
def shipped_patterns() -> tuple[Pattern, ...]:
    """Return the catalogue's fusion patterns, and those mined from programs that triggered a pass."""
    return tuple(one for one in every_pattern() if one.motif is None or not one.motif.noop)


@cache
def every_pattern() -> tuple[Pattern, ...]:
    """Return the patterns of the catalogue, no-ops included, and the mined ones."""
    return (*patterns_of(), *_mined())


def _mined() -> tuple[Pattern, ...]:
    folder = _DATA.joinpath("mined")
    if not folder.is_dir():
        return ()
    found: list[Pattern] = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".patterns"):
            with as_file(entry) as path:
                found += read_library(path)
    return tuple(found)
