"""The knobs of the producers: one frozen value that prints and parses as a spec."""

from dataclasses import dataclass
from typing import Literal

from miscompile.base.errors import SpecError

Guidance = Literal["steer", "gate", "off"]
"""steer: prefer what was used least; gate: a node enters only if it adds coverage; off: uniform."""


@dataclass(frozen=True, slots=True)
class Knobs:
    """What strict generation can be told.

    `nodes` is the number of operators aimed at; `ops` and `dtypes` restrict what is generated (empty: everything the
    target takes); `opsets` are drawn from; `motifs` and `noops` are probabilities of planting one instead of
    inserting an operator; `integral` is the share of graphs in exact arithmetic, `full` the share whose narrow
    integers run over their whole range; `inner_outputs` the probability that an inner value becomes an output;
    `variants` the number of programs made of one graph, which differ in outputs, constants and inputs; `share` the
    producer's share among several.
    """

    nodes: int = 10
    ops: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    opsets: tuple[int, ...] = (17, 18, 20, 21, 22)
    max_rank: int = 5
    max_dim: int = 8
    max_elements: int = 1024
    motifs: float = 0.12
    noops: float = 0.1
    guidance: Guidance = "steer"
    integral: float = 0.45
    full: float = 0.5
    zero_size: float = 0.004
    inner_outputs: float = 0.08
    feeds: int = 1
    variants: int = 3
    share: float = 1.0

    def __post_init__(self) -> None:
        """Raise SpecError for values that leave nothing to generate."""
        if self.nodes < 1 or self.variants < 1 or self.feeds < 1 or self.max_dim < 1 or self.max_elements < 1:
            raise SpecError("nodes, variants, feeds, max_dim and max_elements must be at least 1")
        if self.max_rank < 0 or self.share <= 0:
            raise SpecError("max_rank must not be negative, and share must be more than 0")
        if not all(0 <= chance <= 1 for chance in (self.motifs, self.noops, self.integral, self.full, self.zero_size)):
            raise SpecError("motifs, noops, integral, full and zero_size are probabilities: numbers from 0 to 1")
