"""The mutants of a measurement, and the survivors that were read."""

import tomllib
from functools import cache
from pathlib import Path

from miscompile.base.digest import digest_words
from miscompile.targets.toy.mutants import Mutant, mutants


def chosen(share: float, only: str = "") -> tuple[Mutant, ...]:
    """Return about `share` of all mutants whose names contain `only`: drawn by their names, the same ones each time."""
    limit = share * 2**64
    return tuple(one for one in mutants() if only in one.name and digest_words("mutant", one.name) % 2**64 < limit)


@cache
def equivalent() -> dict[str, str]:
    """Return the mutants that compute what the sound optimiser computes, by name, each with the reason."""
    data = tomllib.loads(Path(__file__).with_name("equivalent.toml").read_text("utf-8"))
    return {name: entry["reason"] for entry in data.get("reason", []) for name in entry["mutants"]}
