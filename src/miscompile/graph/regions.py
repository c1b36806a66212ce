"""Regions of a graph that can be extracted: connected operators, with all operators on the paths between them.

A region is *convex*: no path leaves it and returns. It can therefore be a graph of its own, or a part of another
one.
"""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from miscompile.graph.edges import map_bodies, producers, reads, users
from miscompile.graph.model import Graph, Node, TensorType

_MOST_SHARING = 8
"""The most users of an operand that connects its users; a mask that half the model reads connects nothing."""

Members = frozenset[int]
"""Operators by their indices in the order of execution."""


class Regions:
    """The dependency graph over the operators of a graph, by their indices in the order of execution.

    `before` and `after` are the producers of an operator's operands and the users of its results. `beside` are the
    operators that share an operand with it, such as the projections of an attention. `fixed` tells whether an
    operator depends on constants only; `fit` tells whether the caller allows it in a region. `made` and `users` are
    the producers and users of each value; `outer` contains the names of the graph's outputs.
    """

    def __init__(self, graph: Graph, fits: Callable[[Node], bool]) -> None:
        self.graph = graph
        self.made, self.users = producers(graph), users(graph)
        self.outer = {info.name for info in graph.outputs}
        made = self.made
        self.before = [sorted({made[name] for name in reads(node) if name in made}) for node in graph.nodes]
        self.after: list[list[int]] = [[] for _ in graph.nodes]
        for place, sources in enumerate(self.before):
            for source in sources:
                self.after[source].append(place)
        self.fixed = self._fixed()
        self.beside = [self._sharing(node) for node in graph.nodes]
        self.fit = [fits(node) for node in graph.nodes]

    def starts(self) -> list[int]:
        """Return the operators from which regions grow: those that fit and depend on non-constant values."""
        return [place for place, fit in enumerate(self.fit) if fit and not self.fixed[place]]

    def near(self, members: Members) -> list[int]:
        """Return the operators next to a region that can join it, in order."""
        near = {place for edges in (self.before, self.after, self.beside) for m in members for place in edges[m]}
        return sorted(place for place in near - members if self.fit[place] and not self.fixed[place])

    def closed(self, members: Members) -> Members:
        """Return `members` and every operator on a path between two of them."""
        first, last = min(members), max(members)
        below = _reached(members, self.after, first, last)
        above = _reached(members, self.before, first, last)
        return members | (below & above)

    def all_fit(self, members: Members) -> bool:
        """Tell whether all of them are allowed in a region."""
        return all(self.fit[place] for place in members)

    def grown(self, start: int, size: int, rng: random.Random) -> Members:
        """Grow a region of at most `size` operators from `start`, by neighbours and the operators between them."""
        members, refused = frozenset({start}), set[int]()
        while len(members) < size:
            options = [place for place in self.near(members) if place not in refused]
            if not options:
                break
            chosen = options[int(rng.random() * len(options))]
            wider = self.closed(members | {chosen})
            if len(wider) > size or not self.all_fit(wider):
                refused.add(chosen)
            else:
                members = wider
        return members

    def with_constants(self, members: Members) -> Members:
        """Add operators that depend on constants only, such as a transposition, so that constants do not become
        inputs."""
        wider, waiting = set(members), list(members)
        while waiting:
            for place in self.before[waiting.pop()]:
                if self.fixed[place] and self.fit[place] and place not in wider:
                    wider.add(place)
                    waiting.append(place)
        return frozenset(wider)

    def leaves(self, name: str, members: Members) -> bool:
        """Tell whether a value produced in a region is used outside it; a value without uses is not an output."""
        return name in self.outer or any(place not in members for place in self.users.get(name, ()))

    def constant(self, name: str) -> bool:
        """Tell whether a value depends on constants only."""
        return name in self.graph.initializers or (name in self.made and self.fixed[self.made[name]])

    def _fixed(self) -> list[bool]:
        fixed: list[bool] = []
        for node in self.graph.nodes:
            read = [name for name in reads(node) if name not in self.graph.initializers]
            source = bool(node.inputs) or node.op == "Constant"
            fixed.append(source and all(name in self.made and fixed[self.made[name]] for name in read))
        return fixed

    def _sharing(self, node: Node) -> list[int]:
        names = [name for name in dict.fromkeys(reads(node)) if not self.constant(name)]
        groups = [self.users[name] for name in names]
        return [place for group in groups if len(group) <= _MOST_SHARING for place in group]


def _reached(members: Members, edges: Sequence[Sequence[int]], first: int, last: int) -> set[int]:
    """Return the operators between `first` and `last` that are reachable from `members`."""
    found: set[int] = set()
    waiting = list(members)
    while waiting:
        for place in edges[waiting.pop()]:
            if first <= place <= last and place not in found:
                found.add(place)
                waiting.append(place)
    return found


def standard(node: Node) -> Node:
    """Return `node` with the short name of the standard domain, in bodies too."""
    inner = map_bodies(node, lambda body: replace(body, nodes=tuple(map(standard, body.nodes))))
    return replace(inner, domain="")


def elements(kind: TensorType) -> int:
    """Return the number of elements of a type; unknown sizes count as one."""
    return math.prod(size for size in kind.shape or () if isinstance(size, int))
