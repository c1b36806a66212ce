"""Slices: connected subgraphs of a real model, with its weights, as seeds for generation.

Optimisers are tuned on real models, which contain their patterns as exporters write them. A slice is *convex*: no path
leaves it and re-enters it, so that it can run alone. A value that enters it becomes an input, fed with elements from
the interval observed when the whole model ran.
"""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from miscompile.base.dtypes import PLAIN
from miscompile.base.errors import SpecError
from miscompile.core.tensor import Tensor
from miscompile.graph.edges import reads
from miscompile.graph.fingerprint import fingerprint
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.randomness import plain
from miscompile.graph.regions import Regions, elements, standard
from miscompile.ops.seed import Seed, SeedOrigin
from miscompile.producers.slices.observation import Observed, ObservedValue

_TELLING_SIZE = 16
"""Constants up to this many elements distinguish slices; the elements of larger ones do not, because every layer has
its own.
"""


@dataclass(frozen=True, slots=True)
class SliceLimits:
    """Limits on the slices of a model.

    A slice has `least` to `most` nodes, not counting nodes on constants alone; constants of at most `weights` bytes
    together; values of at most `elements` elements. `per_model` limits the slices of one model.
    """

    least: int = 3
    most: int = 12
    weights: int = 4 << 20
    elements: int = 1 << 20
    per_model: int = 200

    def __post_init__(self) -> None:
        """Raise SpecError for limits that no slice satisfies."""
        if not 1 <= self.least <= self.most:
            raise SpecError(f"slices of {self.least} to {self.most} nodes: write the smaller number first, at least 1")


@dataclass(slots=True)
class SliceTally:
    """Number of excluded slices (for operators: of nodes), by reason."""

    reasons: Counter[str] = field(default_factory=Counter)

    def lines(self) -> tuple[str, ...]:
        """Return a line for each reason, the most frequent first."""
        return tuple(f"{reason}: {count}" for reason, count in self.reasons.most_common())


def slices(
    whole: Observed, source: str, cut: SliceLimits, rng: random.Random, tally: SliceTally | None = None
) -> Iterator[Seed]:
    """Yield slices of a model, each different from the others in more than names and large weights.

    The same model, options and random stream give the same slices. Excluded are nodes of other domains, random
    operators, values other than tensors of a plain type and fixed sizes, and slices beyond the limits of `cut`; `tally`
    counts them.
    """
    cutter = _Cutter(whole, cut, tally if tally is not None else SliceTally())
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
    """Return a digest that is equal for slices that differ only in names and in elements of large weights."""
    kept = {name: _comparable(value) for name, value in seed.graph.initializers.items()}
    return fingerprint(Model(replace(seed.graph, initializers=kept), {"": seed.opset}))


def unfit(seed: Seed, cut: SliceLimits) -> str:
    """Return why a slice exceeds the limits `cut`, an empty text when it does not."""
    if sum(value.array.nbytes for value in seed.graph.initializers.values()) > cut.weights:
        return f"slices with weights of more than {cut.weights >> 10} KiB"
    kinds = (*seed.types.values(), *(info.type for info in seed.graph.inputs))
    if any(isinstance(kind, TensorType) and elements(kind) > cut.elements for kind in kinds):
        return f"slices with values of more than {cut.elements} elements"
    return ""


def _comparable(value: Tensor) -> Tensor:
    if value.array.size <= _TELLING_SIZE:
        return value
    return Tensor(value.dtype, np.zeros(value.shape, value.array.dtype))


class _Cutter(Regions):
    """The graph of one model, with the nodes that a slice may contain."""

    def __init__(self, whole: Observed, cut: SliceLimits, tally: SliceTally) -> None:
        self.opset, self.values, self.cut, self.tally = whole.model.opset, whole.values, cut, tally
        super().__init__(whole.model.graph, self._fits)

    def pieces(self, rng: random.Random) -> Iterator[frozenset[int]]:
        """Yield connected convex sets of node positions, grown from every admissible node in turn."""
        starts = self.starts()
        rounds = max(1, min(6, 2 * self.cut.per_model // max(1, len(starts))))
        seen: set[frozenset[int]] = set()
        for _ in range(rounds):
            for start in starts:
                members = self.grown(start, rng.randint(self.cut.least, self.cut.most), rng)
                if members not in seen and (len(members) >= self.cut.least or len(starts) < self.cut.least):
                    seen.add(members)
                    yield self.with_constants(members)

    def seed(self, members: frozenset[int], source: str) -> Seed | None:
        """Return the slice of these nodes; None when it has no input, or exceeds a limit."""
        nodes = tuple(self.graph.nodes[place] for place in sorted(members))
        made = {name for node in nodes for name in node.outputs if name}
        outer = dict.fromkeys(name for node in nodes for name in reads(node) if name not in made)
        weights = {name: self.graph.initializers[name] for name in outer if name in self.graph.initializers}
        inputs = [name for name in outer if name not in weights]
        pinned = {name: value for name in inputs if (value := self.values[name].value) is not None}
        outputs = [name for node in nodes for name in node.outputs if name and self.leaves(name, members)]
        if len(pinned) == len(inputs) or not outputs:
            self.tally.reasons["slices without inputs" if outputs else "slices without outputs"] += 1
            return None
        graph = Graph(
            "slice",
            tuple(ValueInfo(name, self.values[name].type) for name in inputs),
            tuple(ValueInfo(name, self.values[name].type) for name in outputs),
            tuple(map(standard, nodes)),
            weights,
            types={name: self.values[name].type for name in made if name in self.values and name not in outputs},
        )
        known = {name: span for name in inputs if name not in pinned and (span := self.values[name].range) is not None}
        named = tuple(f"{node.op} {next(filter(None, node.outputs), '')}".strip() for node in nodes)
        seed = Seed(source, graph, self.opset, known, pinned, SeedOrigin(source.rpartition("/")[0], named))
        reason = unfit(seed, self.cut)
        if reason:
            self.tally.reasons[reason] += 1
        return None if reason else seed

    def _fits(self, node: Node) -> bool:
        """Tell whether a slice may contain `node`."""
        if not plain(node):
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
        seen: ObservedValue | None = self.values.get(name)
        return seen is not None and seen.type.dtype in PLAIN
