"""Observed triggers: the passes that the catalogue's motifs trigger on each target, and reasons where none does.

The pass for which a motif was written and the passes that it triggers may differ, and a release may change them. The
shipped tables are therefore observations, with the version on which they were made. They are in
`data/triggers/<target>.json`; `evaluation/oatest/verify.py` writes them. Two more tables hold, per target and pass, the
reason why no motif can trigger the pass (`data/unmatched.toml`), and whether the pass works on a block or on a whole
subgraph (`data/granularity.toml`, OATest, section 3.1: from the documentation of each pass). Targets with many entries
have files of their own, such as `granularity_tvm.toml`.
"""

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from miscompile.base.errors import SpecError
from miscompile.patterns.pattern import Granularity

_DATA = files("miscompile.patterns").joinpath("data")


class Hidden(NamedTuple):
    """A pass that a motif triggers only while the passes `off`, which would fire before it, are disabled."""

    name: str
    off: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ObservedTriggers:
    """The observations on one version of one target.

    `seen` holds, by the motif's name, the passes that fire in the build as shipped, in order of name; `behind` those
    that fire only with others off. Motifs that trigger no pass are left out of both.
    """

    target: str
    version: str
    seen: Mapping[str, tuple[str, ...]]
    behind: Mapping[str, tuple[Hidden, ...]] = field(default_factory=dict)

    def passes(self) -> frozenset[str]:
        """Return every pass that some motif triggers, including those that need others off."""
        hidden = {one.name for group in self.behind.values() for one in group}
        return frozenset(hidden.union(*self.seen.values()))


def print_triggers(triggers: ObservedTriggers) -> str:
    """Return `triggers` as JSON with a line for each motif, so that two releases can be compared line by line."""
    parts = (
        f' "target": {json.dumps(triggers.target)}',
        f' "version": {json.dumps(triggers.version)}',
        f' "seen": {_table({name: list(passes) for name, passes in triggers.seen.items()})}',
        f' "behind": {_table({name: {one.name: one.off for one in some} for name, some in triggers.behind.items()})}',
    )
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _table(rows: Mapping[str, object]) -> str:
    if not rows:
        return "{}"
    return "{\n" + ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items()) + "\n }"


def parse_triggers(text: str, where: str) -> ObservedTriggers:
    """Parse the text of `print_triggers`; `where` names the source. Raises SpecError for anything else."""
    try:
        data = json.loads(text)
        seen = {name: tuple(map(str, passes)) for name, passes in data["seen"].items()}
        behind = {
            name: tuple(Hidden(one, tuple(map(str, off))) for one, off in some.items())
            for name, some in data["behind"].items()
        }
        return ObservedTriggers(str(data["target"]), str(data["version"]), seen, behind)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise SpecError(f"{where}: not a table of the passes that motifs trigger: {error!r}") from None


@cache
def shipped(target: str) -> ObservedTriggers | None:
    """Return the shipped table of the target called `target`; None without one."""
    entry = _DATA.joinpath("triggers", f"{target}.json")
    return parse_triggers(entry.read_text("utf-8"), entry.name) if entry.is_file() else None


def known_targets() -> tuple[str, ...]:
    """Return the targets for which observations ship, in order of name."""
    entries = _DATA.joinpath("triggers").iterdir()
    return tuple(sorted(entry.name.removesuffix(".json") for entry in entries if entry.name.endswith(".json")))


@cache
def unmatched(target: str) -> Mapping[str, str]:
    """Return for each pass of `target` that no motif can trigger the reason."""
    return {name: str(reason) for name, reason in _rows("unmatched", target).items()}


def reasons(target: str) -> Mapping[str, str]:
    """Return for each pass of `target` that no motif triggers by default why: passes before it, or `unmatched`."""
    found = shipped(target)
    hidden = {
        one.name: f"fires only with {', '.join(one.off)} off ({motif})"
        for motif, group in (found.behind if found else {}).items()
        for one in group
    }
    return {**hidden, **unmatched(target)}


@cache
def granularities(target: str) -> Mapping[str, Granularity]:
    """Return the granularity of each labelled pass of `target`. Raises SpecError for an unknown label."""
    found: dict[str, Granularity] = {}
    for name, row in _rows("granularity", target).items():
        kind = row["granularity"]
        if kind not in ("block", "subgraph"):
            raise SpecError(f"granularity of {target}: {name}: a pass works on a block or a subgraph, not on a {kind}")
        found[name] = kind
    return found


def _rows(kind: str, target: str) -> dict[str, Any]:
    """Return the entries of `target`: of the common file, and of the target's own."""
    own = _toml(f"{kind}_{target}.toml")
    return {**_toml(f"{kind}.toml").get(target, {}), **own.get(target, own)}


@cache
def _toml(name: str) -> dict[str, Any]:
    entry = _DATA.joinpath(name)
    return tomllib.loads(entry.read_text("utf-8")) if entry.is_file() else {}
