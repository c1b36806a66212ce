"""A seed: a subgraph of an existing model, with the observed ranges of its inputs.

Slices of user models are seeds. Producers put them into a scope unchanged, extended, or with other sizes and
attributes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from miscompile.core.tensor import Tensor
from miscompile.graph.model import Graph, TensorType
from miscompile.ops.values import Range


@dataclass(frozen=True, slots=True, eq=False)
class Seed:
    """A graph of the standard operator set `opset` whose inputs and outputs are tensors of fixed sizes.

    `source` names its origin (file name and number). `ranges` bounds the elements of inputs as observed when the whole
    model ran; inputs without an entry were not observed. `pinned` holds the inputs whose elements never change, such as
    computed shapes. Constants are initialisers: the graph has no Constant nodes, and calls no function.
    """

    source: str
    graph: Graph
    opset: int
    ranges: Mapping[str, Range] = field(default_factory=dict)
    pinned: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def types(self) -> Mapping[str, TensorType]:
        """Known types of inner values and outputs; complete for nodes with bodies."""
        known = {**self.graph.types, **{info.name: info.type for info in self.graph.outputs}}
        return {name: kind for name, kind in known.items() if isinstance(kind, TensorType)}

    @property
    def operators(self) -> tuple[str, ...]:
        """Operators in the order of the nodes, with repetition."""
        return tuple(node.op for node in self.graph.nodes)
