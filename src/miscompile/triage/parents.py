"""Neighbours on the way back to the library's test: which of their differences from it does a bug need?

A neighbour differs from an instance of a library's own test by a few steps. Reduction would make both small, and a
reader would no longer see what the library's developers have not tested. So the differences are undone first, one at a
time, as far as the bug still shows.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from miscompile.instances.differences import ParameterDifference, between, described, differences
from miscompile.instances.instance import Instance, Parent
from miscompile.triage.reduce.engine import Budget

MOST_UNDONE = 60
"""The most instances between neighbour and test that are examined."""

_Kept = frozenset[ParameterDifference]


@dataclass(frozen=True, slots=True)
class NearestInstance:
    """The instance nearest to the test's that shows the bug; `needed` are its differences, `undone` the others."""

    instance: Instance
    parent: Parent
    needed: tuple[str, ...]
    undone: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the fact `differences`."""
        test = self.parent.instance.origin
        return {"test": test, "needed": list(self.needed), "undone": list(self.undone)}


def nearest(
    neighbour: Instance, parent: Parent, shows: Callable[[Instance], bool], budget: Budget
) -> NearestInstance | None:
    """Return the instance nearest to `parent` that shows the bug of `neighbour`; None if the two are the same."""
    found = differences(neighbour, parent.instance)
    if not found:
        return None
    known: dict[_Kept, bool] = {frozenset(found): True}

    def still(kept: _Kept) -> bool:
        if kept not in known:
            spent = len(known) > budget.tries or budget.expired()
            known[kept] = not spent and shows(between(neighbour, parent.instance, kept))
        return known[kept]

    kept = _fewest(frozenset(found), still)
    undone = frozenset(found) - kept
    return NearestInstance(
        between(neighbour, parent.instance, kept) if undone else neighbour,
        parent,
        described(neighbour, parent, kept),
        described(neighbour, parent, undone),
    )


def _fewest(kept: _Kept, still: Callable[[_Kept], bool]) -> _Kept:
    """Undo differences as long as any can be undone; all of them at once first."""
    if still(frozenset()):
        return frozenset()
    before: _Kept | None = None
    while kept != before:
        before = kept
        for group in _groups(kept):
            if group & kept and still(kept - group):
                kept -= group
    return kept


def _groups(kept: _Kept) -> Iterator[_Kept]:
    """Yield differences that one step may have made: those of a kind, those of a parameter, and then each alone."""
    for kind in ("shape", "type", "elements"):
        yield frozenset(one for one in kept if one.kind == kind)
    for key in sorted({one.key for one in kept}):
        yield frozenset(one for one in kept if one.key == key)
    for one in sorted(kept):
        yield frozenset({one})
