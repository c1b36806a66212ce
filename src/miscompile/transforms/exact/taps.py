"""Inner values as additional outputs of the graph.

An output cannot be fused away, and keeps its type, layout and precision. This is the strongest barrier that changes no
node. The new outputs follow the original ones, whose positions do not change.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from miscompile.graph.model import Model, TensorType, ValueInfo
from miscompile.transforms.exact.placed import Placed
from miscompile.transforms.exact.scopes import scopes, types_by_scope


@dataclass(frozen=True, slots=True)
class Taps(Placed):
    """Adds inner values of the main graph to its outputs. Places are values."""

    stream_name: ClassVar[str] = "Taps"

    def places(self, model: Model) -> tuple[str, ...]:
        """Return the values that can be outputs: dense tensors of known rank that nodes compute."""
        return tuple(self._tapped(model))

    def apply(self, model: Model) -> Model:
        """Return `model` with additional outputs at the end. Raises RejectedDraft when no value can be one."""
        found = self._tapped(model)
        picked = self.picked(found)
        outputs = tuple(info for place, info in found.items() if place in picked)
        graph = model.graph
        types = {name: known for name, known in graph.types.items() if name not in {info.name for info in outputs}}
        return replace(model, graph=replace(graph, outputs=(*graph.outputs, *outputs), types=types))

    def _tapped(self, model: Model) -> dict[str, ValueInfo]:
        main = next(scope for scope in scopes(model) if scope.kind == "main")
        types, outputs = types_by_scope(model)[""], main.output_names
        found: dict[str, ValueInfo] = {}
        for node in main.nodes:
            for name in node.outputs:
                known = types.get(name)
                if name and name not in outputs and isinstance(known, TensorType) and known.shape is not None:
                    found[main.place(name)] = ValueInfo(name, known)
        return found
