"""Cutting a graph into the units that optimisations work on: connected subgraphs, and contiguous blocks of them.

An optimisation matches a region of a few operators, or a whole connected subgraph. A *subgraph* is therefore a set of
operators connected by input or output tensors, and a *block* a region of a subgraph whose operators are connected by
intermediate tensors (OATest, section 3.1). Both are *convex*: no path leaves and re-enters them, so that they can run
alone and be part of another graph. A value that enters is a hole; a value that other operators read is a broken output.
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from miscompile.base.dtypes import PLAIN
from miscompile.base.errors import SpecError
from miscompile.core.tensor import Tensor
from miscompile.graph.edges import reads
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.randomness import plain
from miscompile.graph.regions import Regions, elements, standard
from miscompile.graph.typing import static_types
from miscompile.ops.seed import Seed
from miscompile.ops.values import Range

_MOST_BLOCKS = 1 << 14
"""Limit on the enumeration of blocks of one graph, because wide graphs have exponentially many."""

_TRIES = 20
"""Attempts for each requested random block, because most attempts repeat an earlier one."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A graph to be cut, with facts about its values by name.

    `types` are those with fixed sizes; values without one cannot be in a piece. `ranges` bounds elements, and `fixed`
    holds constant ones, such as computed shapes. `name` becomes the source of the pieces.
    """

    name: str
    graph: Graph
    opset: int
    types: Mapping[str, TensorType]
    ranges: Mapping[str, Range] = field(default_factory=dict)
    fixed: Mapping[str, Tensor] = field(default_factory=dict)


def whole_of(model: Model, name: str) -> Whole:
    """Return `model` with its inferred types, without ranges of elements."""
    return Whole(name, model.graph, model.opset, static_types(model))


@dataclass(frozen=True, slots=True)
class PieceSizes:
    """How large pieces are: `least` to `most` operators, those on constants alone not counted; constants of at most
    `weights` bytes together; values of at most `elements` elements.
    """

    least: int = 1
    most: int = 12
    weights: int = 4 << 20
    elements: int = 1 << 20

    def __post_init__(self) -> None:
        """Raise SpecError for sizes that no piece satisfies."""
        if not 1 <= self.least <= self.most:
            raise SpecError(f"pieces of {self.least} to {self.most} operators: write the smaller number first")


def subgraphs(whole: Whole, sizes: PieceSizes, left: Counter[str] | None = None) -> Iterator[Seed]:
    """Yield the connected units of a graph, in the order of their first operators.

    A shared constant does not connect two units; each gets the operators on constants alone that it needs. `left`
    counts excluded units by reason.
    """
    operators = Operators(whole, sizes, left)
    for number, members in enumerate(operators.units(), 1):
        if len(members) > sizes.most:
            operators.left[f"units of more than {sizes.most} operators"] += 1
        elif operators.closed(members) != members:
            operators.left["units around an operator that cannot be taken"] += 1
        elif len(members) >= sizes.least:
            seed = operators.cut(operators.with_constants(members), f"{whole.name}/unit {number}")
            if seed is not None:
                yield seed


def blocks(
    whole: Whole,
    sizes: PieceSizes,
    left: Counter[str] | None = None,
    *,
    rng: random.Random | None = None,
    count: int = 60,
) -> Iterator[Seed]:
    """Yield the blocks of a graph, smaller ones first; with `rng`, a random sample of `count` of all sizes."""
    operators = Operators(whole, sizes, left)
    found = operators.regions() if rng is None else operators.drawn(rng, count)
    for number, members in enumerate(found, 1):
        seed = operators.cut(operators.with_constants(members), f"{whole.name}/block {number}")
        if seed is not None:
            yield seed


class Operators(Regions):
    """The operators of a graph, and their division into pieces; `left` counts excluded operators by reason."""

    def __init__(self, whole: Whole, sizes: PieceSizes, left: Counter[str] | None = None) -> None:
        self.whole, self.sizes, self.left = whole, sizes, Counter[str]() if left is None else left
        super().__init__(whole.graph, self._fits)
        self._taken = self.starts()

    def units(self) -> Iterator[frozenset[int]]:
        """Yield the sets of operators that are connected by their operands and results."""
        groups: dict[str, list[int]] = {}
        for place in self._taken:
            node = self.graph.nodes[place]
            for name in (*reads(node), *node.outputs):
                if name and not self.constant(name):
                    groups.setdefault(name, []).append(place)
        near: dict[int, set[int]] = {place: set() for place in self._taken}
        for places in groups.values():
            for place in places[1:]:
                near[places[0]].add(place)
                near[place].add(places[0])
        seen: set[int] = set()
        for start in self._taken:
            if start not in seen:
                members = _flooded(start, near)
                seen |= members
                yield frozenset(members)

    def regions(self) -> Iterator[frozenset[int]]:
        """Yield every connected and convex set of `least` to `most` operators, up to `_MOST_BLOCKS`."""
        layer = dict.fromkeys(frozenset({place}) for place in self._taken)
        seen = set(layer)
        waiting: dict[int, dict[frozenset[int], None]] = {1: layer}
        for size in range(1, self.sizes.most + 1):
            for members in waiting.pop(size, {}):
                if size >= self.sizes.least:
                    yield members
                for place in self.near(members):
                    wider = self.closed(members | {place})
                    if len(wider) <= self.sizes.most and wider not in seen and self.all_fit(wider):
                        if len(seen) >= _MOST_BLOCKS:
                            self.left[f"blocks beyond the first {_MOST_BLOCKS}"] += 1
                            continue
                        seen.add(wider)
                        waiting.setdefault(len(wider), {})[wider] = None

    def drawn(self, rng: random.Random, count: int) -> Iterator[frozenset[int]]:
        """Yield up to `count` regions that differ, each grown from a random operator to a random size."""
        seen: set[frozenset[int]] = set()
        for _ in range(count * _TRIES if self._taken else 0):
            members = self.grown(rng.choice(self._taken), rng.randint(self.sizes.least, self.sizes.most), rng)
            if members not in seen and len(members) >= self.sizes.least:
                seen.add(members)
                yield members
            if len(seen) == count:
                return

    def cut(self, members: frozenset[int], source: str) -> Seed | None:
        """Return these operators as a seed; None, counted, when they have no hole, or exceed the sizes.

        Inputs in `fixed` are pinned; the other inputs are the holes.
        """
        whole, types = self.whole, self.whole.types
        nodes = tuple(self.graph.nodes[place] for place in sorted(members))
        made = {name for node in nodes for name in node.outputs if name}
        outer = dict.fromkeys(name for node in nodes for name in reads(node) if name not in made)
        constants = {name: self.graph.initializers[name] for name in outer if name in self.graph.initializers}
        inputs = [name for name in outer if name not in constants]
        pinned = {name: whole.fixed[name] for name in inputs if name in whole.fixed}
        outputs = [name for node in nodes for name in node.outputs if name and self._breaks(name, members)]
        reason = self._unfit(inputs, outputs, constants, made) if len(pinned) < len(inputs) else "pieces without holes"
        if reason:
            self.left[reason] += 1
            return None
        graph = Graph(
            "piece",
            tuple(ValueInfo(name, types[name]) for name in inputs),
            tuple(ValueInfo(name, types[name]) for name in outputs),
            tuple(map(standard, nodes)),
            constants,
            types={
                name: types[name] for node in nodes for name in node.outputs if name in types and name not in outputs
            },
        )
        ranges = {name: whole.ranges[name] for name in inputs if name in whole.ranges and name not in pinned}
        return Seed(source, graph, whole.opset, ranges, pinned)

    def _unfit(
        self, inputs: Sequence[str], outputs: Sequence[str], constants: Mapping[str, Tensor], made: set[str]
    ) -> str:
        """Return why a piece is excluded, an empty text when it is not."""
        types, sizes = self.whole.types, self.sizes
        if not outputs:
            return "pieces without outputs"
        if sum(value.array.nbytes for value in constants.values()) > sizes.weights:
            return f"pieces with constants of more than {sizes.weights >> 10} KiB"
        if any(elements(types[name]) > sizes.elements for name in (*inputs, *made) if name in types):
            return f"pieces with values of more than {sizes.elements} elements"
        return ""

    def _breaks(self, name: str, members: frozenset[int]) -> bool:
        """Tell whether a result of a piece is read outside it; unused results are no outputs.

        Nor are values that depend on constants alone, because every piece that reads one includes its computation.
        """
        return not self.fixed[self.made[name]] and self.leaves(name, members)

    def _fits(self, node: Node) -> bool:
        """Tell whether a piece may contain `node`."""
        if not plain(node):
            self.left[f"nodes of {node.domain or 'random'} operator {node.op}"] += 1
            return False
        for name in dict.fromkeys((*reads(node), *node.outputs)):
            if name and not self._usable(name):
                self.left["nodes with values of unknown size or other kinds"] += 1
                return False
        return True

    def _usable(self, name: str) -> bool:
        if name in self.graph.initializers:
            return self.graph.initializers[name].dtype in PLAIN
        kind = self.whole.types.get(name)
        return kind is not None and kind.dtype in PLAIN


def _flooded(start: int, near: Mapping[int, set[int]]) -> set[int]:
    members, waiting = {start}, [start]
    while waiting:
        for place in near[waiting.pop()] - members:
            members.add(place)
            waiting.append(place)
    return members
