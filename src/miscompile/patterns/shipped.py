"""All patterns that ship with the tool: the catalogue's, with their observed triggers, and mined ones."""

from functools import cache
from importlib.resources import as_file, files

from miscompile.patterns.library import read_library
from miscompile.patterns.pattern import Pattern
from miscompile.patterns.triggers import patterns_of


@cache
def shipped_patterns() -> tuple[Pattern, ...]:
    """Return the catalogue's fusion patterns, and those mined from programs that triggered a pass."""
    return tuple(one for one in every_pattern() if one.motif is None or not one.motif.noop)


@cache
def every_pattern() -> tuple[Pattern, ...]:
    """Return the patterns of the catalogue, no-ops included, and the mined ones."""
    return (*patterns_of(), *_mined())


def _mined() -> tuple[Pattern, ...]:
    folder = files("miscompile.patterns").joinpath("data", "mined")
    if not folder.is_dir():
        return ()
    found: list[Pattern] = []
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".patterns"):
            with as_file(entry) as path:
                found += read_library(path)
    return tuple(found)
