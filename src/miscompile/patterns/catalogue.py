"""The motifs that ship with the tool, read once from the text files beside this module."""

from functools import cache
from importlib.resources import files

from miscompile.base.errors import SpecError
from miscompile.patterns.language import Motif, parse_motifs


@cache
def catalogue() -> tuple[Motif, ...]:
    """Return every motif, in order of file and place. Two motifs of one name are an error."""
    found: dict[str, Motif] = {}
    folder = files("miscompile.patterns").joinpath("data")
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
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
