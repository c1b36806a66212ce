"""Random convex sets of nodes of one region, mostly connected, as candidates for a function.

A set is convex when no path leaves and re-enters it: only then can one call replace it.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from miscompile.graph.edges import reads
from miscompile.graph.model import Node
from miscompile.transforms.functions.regions import Region

_SIZES = (1, 2, 2, 3, 3, 4, 5, 8)
_WHOLE = 0.1
"""Share of the sets that may grow to the whole region."""

_DISTANT_SHARE = 0.15
"""Probability that the next node need not be adjacent to the chosen ones."""


@dataclass(frozen=True, slots=True)
class Links:
    """The predecessors and successors of each node, by position in a region."""

    before: tuple[frozenset[int], ...]
    after: tuple[frozenset[int], ...]

    def closed(self, places: Iterable[int]) -> frozenset[int]:
        """Return the smallest convex set that contains `places`."""
        chosen = frozenset(places)
        return chosen | (_reached(chosen, self.before) & _reached(chosen, self.after))

    def near(self, places: frozenset[int]) -> list[int]:
        """Return the nodes that compute operands or use results of `places`, in order."""
        found = {other for place in places for other in self.before[place] | self.after[place]}
        return sorted(found - places)


def links(nodes: Sequence[Node]) -> Links:
    """Return the dependences of `nodes`, which are in topological order."""
    made = {name: place for place, node in enumerate(nodes) for name in node.outputs if name}
    before = [frozenset(made[name] for name in reads(node) if name in made) for node in nodes]
    after: list[set[int]] = [set() for _ in nodes]
    for place, earlier in enumerate(before):
        for other in earlier:
            after[other].add(place)
    return Links(tuple(before), tuple(frozenset(later) for later in after))


def _reached(start: frozenset[int], steps: Sequence[frozenset[int]]) -> frozenset[int]:
    """Return the nodes reachable from `start` in one or more steps."""
    found: set[int] = set()
    waiting = [other for place in start for other in steps[place]]
    while waiting:
        place = waiting.pop()
        if place not in found:
            found.add(place)
            waiting.extend(steps[place])
    return frozenset(found)


def wrappable(region: Region) -> frozenset[int]:
    """Return the places of the nodes that may move into a function.

    Excluded are nodes that read a sparse initialiser, which no call can pass, and nodes with a reference to an
    attribute of the enclosing function that is a body or has no kind.
    """
    return frozenset(
        place
        for place, node in enumerate(region.nodes)
        if region.barred.isdisjoint(reads(node)) and all(map(_can_pass, _references(node)))
    )


def _can_pass(kind: str | None) -> bool:
    return kind is not None and kind not in ("graph", "graphs")


def _references(node: Node) -> list[str | None]:
    kinds: list[str | None] = [given.ref_kind for given in node.attributes.values() if given.kind == "ref"]
    for body in node.subgraphs():
        for inner in body.nodes:
            kinds += _references(inner)
    return kinds


def convex_set(rng: random.Random, region: Region) -> frozenset[int] | None:
    """Return the places of a random convex set of nodes that can be wrapped; None when there is none."""
    allowed = wrappable(region)
    if not allowed:
        return None
    known = links(region.nodes)
    wanted = len(region.nodes) if rng.random() < _WHOLE else rng.choice(_SIZES)
    chosen = frozenset((rng.choice(sorted(allowed)),))
    for _ in range(2 * wanted):
        if len(chosen) >= wanted:
            break
        distant = rng.random() < _DISTANT_SHARE
        near = sorted(allowed - chosen) if distant else known.near(chosen)
        if not near:
            break
        grown = known.closed(chosen | {rng.choice(near)})
        if grown <= allowed and len(grown) <= wanted + 2:
            chosen = grown
    return chosen


def used_outside(region: Region, places: frozenset[int]) -> list[str]:
    """Return the results of `places` that other nodes use or that are outputs of the region, in order."""
    outside = set(region.outputs)
    for place, node in enumerate(region.nodes):
        if place not in places:
            outside.update(reads(node))
    made = [name for place in sorted(places) for name in region.nodes[place].outputs]
    return [name for name in made if name and name in outside]
