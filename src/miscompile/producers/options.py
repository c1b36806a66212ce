"""The options of the producers: one frozen value that prints and parses as a spec."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from miscompile.base.errors import SpecError
from miscompile.ops.spec import OperatorLimits

Guidance = Literal["steer", "gate", "off"]
"""steer: prefer pairs that were used least; gate: a node enters only if it adds coverage; off: uniform."""


OPSETS = tuple(range(13, 29))
"""Every opset that the generator writes; a campaign leaves out those that its targets or the installed onnx lack."""

_IN_USE = frozenset(range(17, 22))
_WEIGHT = 3
"""Models in use have opsets 17 to 21: each of these is drawn three times as often as any other."""

_FEWEST, _LARGEST = 3, 200
"""Greatest number of operators in a small graph, and in the largest graphs."""


BOUNDARIES = tuple(sorted({size + step for size in (2, 4, 8, 16, 32, 64, 128) for step in (-1, 0, 1)}))
"""Sizes around vector widths and tiles: powers of two, and one less and one more."""

LARGE = 1 << 16
"""Elements of a large tensor, at least: kernels share the work of such tensors among threads."""

_OWN_BLOCKS = 0.5
"""Share of the graphs with sizes at boundaries that have those of the target's own kernels."""

_MOST_AT_BOUNDARY = 4096
"""The most elements of a tensor with sizes at boundaries."""

_EMPTY = 0.01
"""Probability of a size zero in a graph with sizes at boundaries, at least."""


@dataclass(frozen=True, slots=True)
class GeneratorOptions:
    """The options of strict generation.

    Tensors are drawn with ranks from `min_rank` to `max_rank`, where an operator admits these. `nodes` is the
    number of operators aimed at; `spread` the share of graphs of another size, half of them with one to three
    operators, the others with up to 200, fewer more often; `ops` and `dtypes` restrict what is generated (empty:
    everything the target supports); `opsets` are drawn from; `motifs` and `noops` are probabilities of planting one
    instead of inserting an operator, `quantised` and `containers` the shares of the motifs that are quantised
    chains, and blocks of sequences and optionals; `control` is the probability of planting a block with bodies (If,
    Loop, Scan); `integral` is the share of graphs in exact arithmetic, `full` the share whose narrow integers run
    over their whole range; `boundary` is the share of graphs whose sizes are around vector widths and tiles, half of
    them around those of the target's kernels (`blocks`), `large` the share with tensors of 65,536 elements and more;
    `inner_outputs` the probability that an inner value becomes an output; `variants` the
    number of programs made of one graph, which differ in outputs, constants and inputs; `share` the producer's
    share among several.
    """

    nodes: int = 10
    spread: float = 0.1
    ops: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    opsets: tuple[int, ...] = OPSETS
    min_rank: int = 0
    max_rank: int = 6
    max_dim: int = 8
    max_elements: int = 1024
    motifs: float = 0.12
    noops: float = 0.1
    quantised: float = 0.1
    containers: float = 0.06
    control: float = 0.03
    guidance: Guidance = "steer"
    integral: float = 0.45
    full: float = 0.5
    zero_size: float = 0.004
    boundary: float = 0.12
    large: float = 0.003
    blocks: tuple[int, ...] = ()
    inner_outputs: float = 0.08
    feeds: int = 1
    variants: int = 3
    share: float = 1.0

    def __post_init__(self) -> None:
        """Raise SpecError for values that leave nothing to generate."""
        if self.nodes < 1 or self.variants < 1 or self.feeds < 1 or self.max_dim < 1 or self.max_elements < 1:
            raise SpecError("nodes, variants, feeds, max_dim and max_elements must be at least 1")
        if not 0 <= self.min_rank <= self.max_rank or self.share <= 0:
            raise SpecError("min_rank and max_rank must be in order and not negative, and share must be more than 0")
        chances = (
            self.spread, self.motifs, self.noops, self.quantised, self.containers, self.control, self.integral,
            self.full, self.zero_size, self.boundary, self.large,
        )  # fmt: skip
        if not all(0 <= chance <= 1 for chance in chances):
            raise SpecError("probabilities and shares (spread, motifs, noops, ..., zero_size) are numbers from 0 to 1")

    def draw_opset(self, rng: random.Random, opsets: Sequence[int] | None = None) -> int:
        """Draw the opset of a graph, of `opsets` if they are given."""
        choice = self.opsets if opsets is None else opsets
        weights = [_WEIGHT if opset in _IN_USE else 1 for opset in choice]
        return rng.choices(choice, weights)[0]

    def draw_nodes(self, rng: random.Random) -> int:
        """Draw the number of operators that a graph aims at."""
        chance = rng.random()
        if chance >= self.spread:
            return self.nodes
        if chance < self.spread / 2:
            return rng.randint(1, _FEWEST)
        factor: float = max(1.0, _LARGEST / self.nodes) ** rng.random()
        return round(self.nodes * factor)

    def draw_limits(self, rng: random.Random, plain: OperatorLimits) -> OperatorLimits:
        """Draw the limits of a graph: those of `plain`, or with sizes around boundaries, or with large tensors.

        A graph with sizes around boundaries has few of them, so that it costs no more than another one.
        """
        if self.boundary + self.large == 0.0:
            return plain
        chance = rng.random()
        if chance >= self.boundary + self.large:
            return plain
        if chance >= self.boundary:
            most = LARGE + LARGE // 2
            return replace(plain, max_elements=most, least_elements=LARGE, boundaries=_around(self.blocks))
        sizes = _around(self.blocks) if self.blocks and rng.random() < _OWN_BLOCKS else BOUNDARIES
        most = max(plain.max_elements, _MOST_AT_BOUNDARY)
        empty = max(plain.zero_size, _EMPTY) if plain.zero_size else 0.0
        return replace(plain, max_elements=most, boundaries=sizes, zero_size=empty)


def _around(blocks: Sequence[int]) -> tuple[int, ...]:
    """Return the sizes around `blocks` and twice these, or around usual ones."""
    found = sorted({size + step for block in blocks for size in (block, 2 * block) for step in (-1, 0, 1)})
    return tuple(size for size in found if size > 0) or BOUNDARIES
