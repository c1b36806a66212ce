"""Relations that were observed on samples but do not hold in general, with the reasons.

All other relations count as sound. An entry of `data/refuted-torch.toml`:

    [[refuted]]
    among = ["torch.fmax", "torch.maximum"]                     # any two of these, or
    composed = ["torch.abs", "torch.square", "torch.sqrt"]      # first, second, then of one composed relation
    reason = "..."
"""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from miscompile.base.errors import SpecError
from miscompile.core.events import ProgressListener
from miscompile.harvest.relations.study import Relation, write_relations
from miscompile.instances.archive import Archive


@dataclass(frozen=True, slots=True)
class Refuted:
    """Relations that do not hold: between any two operators in `among`, or the one `composed` of three operators."""

    reason: str
    among: tuple[str, ...] = ()
    composed: tuple[str, ...] = ()

    def covers(self, relation: Relation) -> bool:
        """Tell whether this entry refutes `relation`."""
        if relation.then:
            return (relation.first, relation.second, relation.then) == self.composed
        return relation.first in self.among and relation.second in self.among


def keep_relations(relations: Sequence[Relation], archive: Archive, out: Path, on_progress: ProgressListener) -> Path:
    """Write the relations behind `archive` beside its path `out`, marked where they are refuted, and return the
    path.

    Relations from an interrupted harvest do not replace older ones. Raises UsageError when they cannot be written.
    """
    place = relations_beside(out)
    if archive.figures.get("stopped") and place.exists():
        on_progress(f"the harvest was stopped; {place} is left as it was")
        return place
    known = refuted_relations()
    reasons = {one: next((entry.reason for entry in known if entry.covers(one)), "") for one in relations}
    write_relations(relations, place, archive.versions, lambda one: reasons[one])
    equal = [one for one in relations if one.verdict != "status"]
    count = sum(bool(reasons[one]) for one in equal)
    on_progress(f"{len(equal)} relations, of which {count} are known not to hold in general, are in {place}")
    return place


def relations_beside(out: Path) -> Path:
    """Return the path of the relations of the archive at `out`: `OUT` with the ending `.relations.json`."""
    return out.with_name(out.name.removesuffix(".gz").removesuffix(".jsonl") + ".relations.json")


def refuted_relations() -> tuple[Refuted, ...]:
    """Return the refuted relations that come with the tool."""
    return parse_refuted(
        files("miscompile.harvest.relations").joinpath("data", "refuted-torch.toml").read_text("utf-8")
    )


def parse_refuted(text: str) -> tuple[Refuted, ...]:
    """Read entries from TOML. Raises SpecError that describes the error."""
    try:
        return tuple(_entry(**row) for row in tomllib.loads(text).get("refuted", ()))
    except (tomllib.TOMLDecodeError, TypeError, ValueError) as error:
        raise SpecError(f"refuted relations are malformed: {type(error).__name__}: {error}") from None


def _entry(reason: str, among: list[str] | None = None, composed: list[str] | None = None) -> Refuted:
    if not reason or (among is None) == (composed is None) or len(among or ()) == 1 or len(composed or "abc") != 3:
        raise ValueError("an entry has a reason, and either operators `among` them or three that are `composed`")
    return Refuted(reason, tuple(among or ()), tuple(composed or ()))
