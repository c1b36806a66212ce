"""Relations that were seen on samples but do not hold in general: which, and why.

What is left can be relied on. An entry of `data/refuted-torch.toml`:

    [[refuted]]
    among = ["torch.fmax", "torch.maximum"]                     # any two of these, or
    composed = ["torch.abs", "torch.square", "torch.sqrt"]      # first, second, then of one composed relation
    reason = "..."
"""

import tomllib
from dataclasses import dataclass
from importlib.resources import as_file, files

from miscompile.base.errors import SpecError
from miscompile.migration.relations import Relation, read_relations


@dataclass(frozen=True, slots=True)
class Refuted:
    """Relations that do not hold: between any two operators `among` these, or the one that is `composed` of three."""

    reason: str
    among: tuple[str, ...] = ()
    composed: tuple[str, ...] = ()

    def covers(self, relation: Relation) -> bool:
        """Tell whether it is `relation` that does not hold."""
        if relation.then:
            return (relation.first, relation.second, relation.then) == self.composed
        return relation.first in self.among and relation.second in self.among


def sound_relations() -> list[Relation]:
    """Return the equivalences between PyTorch's operators that come with the tool and are not refuted."""
    with as_file(files("miscompile.migration").joinpath("data", "relations-torch.json")) as path:
        found = read_relations(path)
    without = refuted_relations()
    return [one for one in found if one.verdict == "equivalent" and not any(entry.covers(one) for entry in without)]


def refuted_relations() -> tuple[Refuted, ...]:
    """Return what comes with the tool."""
    return parse_refuted(files("miscompile.migration").joinpath("data", "refuted-torch.toml").read_text("utf-8"))


def parse_refuted(text: str) -> tuple[Refuted, ...]:
    """Read entries from TOML. Raises SpecError that names what is wrong."""
    try:
        return tuple(_entry(**row) for row in tomllib.loads(text).get("refuted", ()))
    except (tomllib.TOMLDecodeError, TypeError, ValueError) as error:
        raise SpecError(f"refuted relations are malformed: {type(error).__name__}: {error}") from None


def _entry(reason: str, among: list[str] | None = None, composed: list[str] | None = None) -> Refuted:
    if not reason or (among is None) == (composed is None) or len(among or ()) == 1 or len(composed or "abc") != 3:
        raise ValueError("an entry has a reason, and either operators `among` them or three that are `composed`")
    return Refuted(reason, tuple(among or ()), tuple(composed or ()))
