"""A small ONNX compiler in numpy: reads a model, optimises it, interprets it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from acme_compiler.graph import Graph, read
from acme_compiler.kernels import KERNELS
from acme_compiler.passes import PASSES

__version__ = "1.0"


@dataclass(frozen=True, slots=True)
class Compiled:
    """A compiled model. `fired` names the passes that changed it."""

    graph: Graph
    fired: tuple[str, ...]

    def run(self, feed: Mapping[str, Any]) -> list[Any]:
        """Run on numpy arrays by the names of the inputs; return the outputs in the model's order."""
        values = dict(self.graph.constants) | dict(feed)
        for node in self.graph.nodes:
            values[node.output] = KERNELS[node.op](node.attributes, *(values[name] for name in node.inputs))
        return [values[name].copy() for name in self.graph.outputs]


def compile_model(model: bytes, level: str = "full", disabled: Collection[str] = ()) -> Compiled:
    """Compile a serialised ONNX model. Level `off` runs no pass, `full` all but those that are `disabled`.

    Raises UnsupportedError for what the compiler lacks, InvalidModelError for a broken model.
    """
    graph, fired = read(model), []
    for name, apply in PASSES.items():
        if level != "off" and name not in disabled and apply(graph):
            fired.append(name)
    return Compiled(graph, tuple(fired))
