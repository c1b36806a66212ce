"""A seed: a subgraph of an existing model, with the observed ranges of its inputs.

Slices of user models are seeds. Producers put them into a scope unchanged, extended, or with other sizes and
attributes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from miscompile.core.tensor import Tensor
from miscompile.graph.model import Graph, TensorType
from miscompile.ops.values import Range


@dataclass(frozen=True, slots=True)
class SeedOrigin:
    """The place in a model that a seed is from, for the reader of a finding.

    `model` is the name of the file or of the corpus model, `nodes` names each operator by its type and its first
    result. `package` is the distribution with its version that the model ships in, or the library that makes the
    architecture; it is empty for a model of the user.
    """

    model: str
    nodes: tuple[str, ...] = ()
    package: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the origin as JSON values, for a recipe."""
        return {"model": self.model, "package": self.package, "nodes": list(self.nodes)}


@dataclass(frozen=True, slots=True, eq=False)
class Seed:
    """A graph of the standard operator set `opset` whose inputs and outputs are tensors of fixed sizes.

    `source` names its origin (file name and number). `ranges` bounds the elements of inputs as observed when the whole
    model ran; inputs without an entry were not observed. `pinned` holds the inputs whose elements never change, such as
    computed shapes. Constants are initialisers: the graph has no Constant nodes, and calls no function. `origin` is the
    model that a slice was cut from (None for seeds of other kinds), and `corpus` tells whether that model is one of the
    corpus.
    """

    source: str
    graph: Graph
    opset: int
    ranges: Mapping[str, Range] = field(default_factory=dict)
    pinned: Mapping[str, Tensor] = field(default_factory=dict)
    origin: SeedOrigin | None = None
    corpus: bool = False

    @property
    def types(self) -> Mapping[str, TensorType]:
        """Known types of inner values and outputs; complete for nodes with bodies."""
        known = {**self.graph.types, **{info.name: info.type for info in self.graph.outputs}}
        return {name: kind for name, kind in known.items() if isinstance(kind, TensorType)}

    @property
    def operators(self) -> tuple[str, ...]:
        """Operators in the order of the nodes, with repetition."""
        return tuple(node.op for node in self.graph.nodes)
