"""Slices: connected pieces of a real model, with its real weights, as seeds for generation.

Optimisers are tuned on real models, so their patterns stand there as people and exporters write them. A slice is
*convex*: no path leaves it and comes back, so that it can run alone. What flows in becomes an input, fed with elements
like those that were seen when the whole model ran.
"""

import math
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from miscompile.base.dtypes import PLAIN
from miscompile.base.errors import SpecError
from miscompile.core.tensor import Tensor
from miscompile.corpus.observation import Observed, Seen
from miscompile.graph.edges import map_bodies, producers, reads, users
from miscompile.graph.fingerprint import fingerprint
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.ops.seed import Seed

_STANDARD = ("", "ai.onnx")
_RANDOM = frozenset(
    {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"}
)
_MOST_SHARING = 8
"""Users up to which a shared operand connects; what half the model uses (a mask) connects nothing."""

_TELLING_SIZE = 16
"""Constants up to this many elements tell slices apart by their contents; layers differ in larger ones all the time."""


@dataclass(frozen=True, slots=True)
class Cut:
    """How models are cut.

    Slices have `least` to `most` nodes, and those that work on their weights alone; constants of at most `weights`
    bytes together; values of at most `elements` elements. `per_model` limits the slices of one model.
    """

    least: int = 3
    most: int = 12
    weights: int = 4 << 20
    elements: int = 1 << 20
    per_model: int = 200

    def __post_init__(self) -> None:
        """Raise SpecError for limits that no slice meets."""
        if not 1 <= self.least <= self.most:
            raise SpecError(f"slices of {self.least} to {self.most} nodes: write the smaller number first, at least 1")


@dataclass(slots=True)
class Tally:
    """What was left out, by reason, in numbers of slices (or of nodes, for operators)."""

    reasons: Counter[str] = field(default_factory=Counter)

    def lines(self) -> tuple[str, ...]:
        """Return a line for each reason, the most frequent first."""
        return tuple(f"{reason}: {count}" for reason, count in self.reasons.most_common())


def slices(whole: Observed, source: str, cut: Cut, rng: random.Random, tally: Tally | None = None) -> Iterator[Seed]:
    """Yield slices of a model, no two of them alike but for the contents of large weights.

    The same model, options and random stream give the same slices. Left out are nodes of foreign domains, random
    operators, values that are no tensors of a plain type and fixed sizes, and what exceeds the limits of `cut`;
    `tally` counts them.
    """
    cutter = _Cutter(whole, cut, tally if tally is not None else Tally())
    seen: set[str] = set()
    for members in cutter.pieces(rng):
        seed = cutter.seed(members, f"{source}/{len(seen) + 1}")
        if seed is None:
            continue
        mark = kind_of(seed)
        if mark not in seen:
            seen.add(mark)
            yield seed
        if len(seen) == cut.per_model:
            return


def kind_of(seed: Seed) -> str:
    """Return a digest that slices share which differ in nothing but names and the contents of large weights."""
    kept = {name: _told(value) for name, value in seed.graph.initializers.items()}
    return fingerprint(Model(replace(seed.graph, initializers=kept), {"": seed.opset}))


def _told(value: Tensor) -> Tensor:
    if value.array.size <= _TELLING_SIZE:
        return value
    return Tensor(value.dtype, np.zeros(value.shape, value.array.dtype))


class _Cutter:
    """The graph of one model, with what can stand in a slice."""

    def __init__(self, whole: Observed, cut: Cut, tally: Tally) -> None:
        graph = whole.model.graph
        self.graph, self.opset, self.values, self.cut, self.tally = graph, whole.model.opset, whole.values, cut, tally
        self._made = producers(graph)
        self._users = users(graph)
        self._outer = {info.name for info in graph.outputs}
        made = self._made
        self._before = [sorted({made[name] for name in reads(node) if name in made}) for node in graph.nodes]
        self._after: list[list[int]] = [[] for _ in graph.nodes]
        for place, sources in enumerate(self._before):
            for source in sources:
                self._after[source].append(place)
        self._fixed = self._constants()
        self._beside = [self._sharing(node) for node in graph.nodes]
        self._fit = [self._fits(node) for node in graph.nodes]

    def pieces(self, rng: random.Random) -> Iterator[frozenset[int]]:
        """Yield sets of nodes, by their places: connected and convex, grown from every node that fits, in turn."""
        starts = [place for place, fit in enumerate(self._fit) if fit and not self._fixed[place]]
        rounds = max(1, min(6, 2 * self.cut.per_model // max(1, len(starts))))
        seen: set[frozenset[int]] = set()
        for _ in range(rounds):
            for start in starts:
                members = self._grown(start, rng.randint(self.cut.least, self.cut.most), rng)
                if members not in seen and (len(members) >= self.cut.least or len(starts) < self.cut.least):
                    seen.add(members)
                    yield self._with_constants(members)

    def seed(self, members: frozenset[int], source: str) -> Seed | None:
        """Return the slice that consists of these nodes; None when it has no input, or is too large."""
        nodes = tuple(self.graph.nodes[place] for place in sorted(members))
        made = {name for node in nodes for name in node.outputs if name}
        outer = dict.fromkeys(name for node in nodes for name in reads(node) if name not in made)
        weights = {name: self.graph.initializers[name] for name in outer if name in self.graph.initializers}
        inputs = [name for name in outer if name not in weights]
        pinned = {name: value for name in inputs if (value := self.values[name].value) is not None}
        outputs = [name for node in nodes for name in node.outputs if name and self._leaves(name, members)]
        reason = self._unfit(inputs, outputs, weights, made) if len(pinned) < len(inputs) else "slices without inputs"
        if reason:
            self.tally.reasons[reason] += 1
            return None
        graph = Graph(
            "slice",
            tuple(ValueInfo(name, self.values[name].type) for name in inputs),
            tuple(ValueInfo(name, self.values[name].type) for name in outputs),
            tuple(map(_standard, nodes)),
            weights,
            types={name: self.values[name].type for name in made if name in self.values and name not in outputs},
        )
        known = {name: span for name in inputs if name not in pinned and (span := self.values[name].range) is not None}
        return Seed(source, graph, self.opset, known, pinned)

    def _unfit(
        self, inputs: Sequence[str], outputs: Sequence[str], weights: Mapping[str, Tensor], made: set[str]
    ) -> str:
        """Return why a slice is left out, nothing when it is fine."""
        if not outputs:
            return "slices without outputs"
        if sum(value.array.nbytes for value in weights.values()) > self.cut.weights:
            return f"slices with weights of more than {self.cut.weights >> 10} KiB"
        if any(_size(self.values[name].type) > self.cut.elements for name in (*inputs, *made) if name in self.values):
            return f"slices with values of more than {self.cut.elements} elements"
        return ""

    def _constants(self) -> list[bool]:
        """Tell of each node whether it depends on constants alone."""
        fixed: list[bool] = []
        for node in self.graph.nodes:
            read = [name for name in reads(node) if name not in self.graph.initializers]
            fixed.append(bool(node.inputs) and all(name in self._made and fixed[self._made[name]] for name in read))
        return fixed

    def _with_constants(self, members: frozenset[int]) -> frozenset[int]:
        """Add what works on weights alone, such as their transposition: weights are not to become inputs."""
        wider, waiting = set(members), list(members)
        while waiting:
            for place in self._before[waiting.pop()]:
                if self._fixed[place] and self._fit[place] and place not in wider:
                    wider.add(place)
                    waiting.append(place)
        return frozenset(wider)

    def _leaves(self, name: str, members: frozenset[int]) -> bool:
        """Tell whether a value made in the slice is used outside it; what nothing uses at all is no output."""
        return name in self._outer or any(place not in members for place in self._users.get(name, ()))

    def _sharing(self, node: Node) -> list[int]:
        """Return the nodes that use an operand of `node` too, as the projections of an attention do."""
        names = [name for name in dict.fromkeys(reads(node)) if name not in self.graph.initializers]
        groups = [self._users[name] for name in names]
        return [place for group in groups if len(group) <= _MOST_SHARING for place in group]

    def _fits(self, node: Node) -> bool:
        """Tell whether `node` can stand in a slice."""
        if not _plain(node):
            self.tally.reasons[f"nodes of {node.domain or 'random'} operator {node.op}"] += 1
            return False
        for name in dict.fromkeys((*reads(node), *node.outputs)):
            if name and not self._usable(name):
                self.tally.reasons["nodes with values of unknown size or other kinds"] += 1
                return False
        return True

    def _usable(self, name: str) -> bool:
        if name in self.graph.initializers:
            return self.graph.initializers[name].dtype in PLAIN
        seen: Seen | None = self.values.get(name)
        return seen is not None and seen.type.dtype in PLAIN

    def _grown(self, start: int, size: int, rng: random.Random) -> frozenset[int]:
        """Grow a set of at most `size` nodes from `start`, by neighbours and what lies between."""
        members, refused = frozenset({start}), set[int]()
        while len(members) < size:
            near = {place for edges in (self._before, self._after, self._beside) for m in members for place in edges[m]}
            options = sorted(p for p in near - members - refused if self._fit[p] and not self._fixed[p])
            if not options:
                break
            chosen = options[int(rng.random() * len(options))]
            wider = self._closed(members | {chosen})
            if len(wider) > size or not all(self._fit[place] for place in wider):
                refused.add(chosen)
            else:
                members = wider
        return members

    def _closed(self, members: frozenset[int]) -> frozenset[int]:
        """Return `members` with every node on a path between two of them. Nodes stand in topological order."""
        first, last = min(members), max(members)
        below = _reached(members, self._after, first, last)
        above = _reached(members, self._before, first, last)
        return members | (below & above)


def _reached(members: frozenset[int], edges: Sequence[Sequence[int]], first: int, last: int) -> set[int]:
    """Return the nodes between `first` and `last` that can be reached from `members`."""
    found: set[int] = set()
    waiting = list(members)
    while waiting:
        for place in edges[waiting.pop()]:
            if first <= place <= last and place not in found:
                found.add(place)
                waiting.append(place)
    return found


def _plain(node: Node) -> bool:
    """Tell whether `node`, with all that its bodies hold, is of the standard domain and not random."""
    if node.domain not in _STANDARD or node.op in _RANDOM:
        return False
    if node.op == "Dropout" and len(node.inputs) > 2 and node.inputs[2]:
        return False  # it may be in training mode
    return all(_plain(inner) for body in node.subgraphs() for inner in body.nodes)


def _standard(node: Node) -> Node:
    """Return `node` with the standard domain called by its short name, in bodies too."""
    inner = map_bodies(node, lambda body: replace(body, nodes=tuple(map(_standard, body.nodes))))
    return replace(inner, domain="")


def _size(kind: TensorType) -> int:
    return math.prod(size for size in kind.shape or () if isinstance(size, int))
