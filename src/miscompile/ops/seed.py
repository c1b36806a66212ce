"""A seed: a piece of a graph that someone wrote, with what is known of the values that flow into it.

Slices of user models are seeds. Generation takes them into its scopes as they are, extended, or in another setting.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from miscompile.core.tensor import Tensor
from miscompile.graph.model import Graph, TensorType
from miscompile.ops.values import Range


@dataclass(frozen=True, slots=True, eq=False)
class Seed:
    """A graph of the standard operator set `opset` whose inputs and outputs are tensors of fixed sizes.

    `source` says where it comes from (file name and number). `ranges` bounds the elements of inputs, as they were seen
    when the whole model ran; inputs that it lacks were not seen. `pinned` holds the inputs that always have the same
    elements, such as computed shapes. Constants are initialisers: the graph has no Constant nodes, and calls no
    function.
    """

    source: str
    graph: Graph
    opset: int
    ranges: Mapping[str, Range] = field(default_factory=dict)
    pinned: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def types(self) -> Mapping[str, TensorType]:
        """What is known of the types of inner values and outputs; complete for nodes with bodies."""
        known = {**self.graph.types, **{info.name: info.type for info in self.graph.outputs}}
        return {name: kind for name, kind in known.items() if isinstance(kind, TensorType)}

    @property
    def operators(self) -> tuple[str, ...]:
        """Operators in the order of the nodes, with repetition."""
        return tuple(node.op for node in self.graph.nodes)
