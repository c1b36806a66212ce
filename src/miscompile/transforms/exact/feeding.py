"""Constants that become inputs, and inputs that become constants: the same computation with another signature.

Passes depend on the values that are known at compile time, so a flip between constant and input is the strongest of the
exact relations. The model's signature changes, so these two return the feeds too.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

from miscompile.base.errors import ModelError
from miscompile.core.tensor import Tensor
from miscompile.graph.model import Graph, Model, TensorType, ValueInfo
from miscompile.transforms.exact.constness import constants
from miscompile.transforms.exact.placed import Placed
from miscompile.transforms.exact.scopes import NodeScope, scopes
from miscompile.transforms.exact.structural import structural_values

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Opened(Placed):
    """Turns constants of the main graph into inputs. Places are the names of constants.

    Constants that hold sizes, axes, trip counts or quantisation parameters stay, unless `structural`, because some
    compilers refuse programs that feed them.
    """

    stream_name: ClassVar[str] = "Opened"

    structural: bool = False

    def places(self, model: Model) -> tuple[str, ...]:
        """Return the constants that can be fed."""
        fixed = frozenset() if self.structural else structural_values(model)
        scope = _main(model)
        barred = fixed | scope.output_names
        return tuple(
            scope.place(name)
            for name, value in constants(scope)
            if name not in barred and value.dtype != "string"
        )  # fmt: skip

    def apply_with_feeds(self, model: Model) -> tuple[Model, tuple[tuple[str, Tensor], ...]]:
        """Return `model` with constants as further inputs at the end, and what to feed these, in order.

        Raises RejectedDraft when the model has no such constants.
        """
        picked, scope = self.picked(self.places(model)), _main(model)
        opened = {name: value for name, value in constants(scope) if scope.place(name) in picked}
        infos = tuple(ValueInfo(name, TensorType(value.dtype, value.shape)) for name, value in opened.items())
        graph = replace(
            model.graph,
            inputs=(*model.graph.inputs, *infos),
            nodes=tuple(node for node in model.graph.nodes if opened.keys().isdisjoint(node.outputs)),
            initializers=_without(model.graph.initializers, opened),
            types=_without(model.graph.types, opened),
        )
        return replace(model, graph=graph), tuple(opened.items())


@dataclass(frozen=True, slots=True)
class Closed(Placed):
    """Turns inputs into constants, for one feed. Places are the names of inputs."""

    stream_name: ClassVar[str] = "Closed"

    def places(self, model: Model) -> tuple[str, ...]:
        """Return the inputs that can be constants: dense tensors that are no outputs as well."""
        scope = _main(model)
        return tuple(
            scope.place(info.name)
            for info in fed_inputs(model.graph)
            if isinstance(info.type, TensorType) and info.name not in scope.output_names
        )

    def apply_to_feed(self, model: Model, feed: Sequence[Tensor]) -> Model:
        """Return `model` with inputs as initialisers with their tensors in `feed`, which has one for each input.

        The remaining inputs keep their order. Raises RejectedDraft when the model has no such inputs, ModelError when
        `feed` does not fit the inputs.
        """
        infos = fed_inputs(model.graph)
        if len(infos) != len(feed):
            raise ModelError(f"the model has {len(infos)} inputs, not {len(feed)}")
        picked, scope = self.picked(self.places(model)), _main(model)
        closed: dict[str, Tensor] = {}
        for info, value in zip(infos, feed, strict=True):
            if scope.place(info.name) in picked:
                if not isinstance(info.type, TensorType) or info.type.dtype != value.dtype:
                    raise ModelError(f"'{info.name}' is fed {value.dtype}, which it is not")
                closed[info.name] = value
        graph = replace(
            model.graph,
            inputs=tuple(info for info in model.graph.inputs if info.name not in closed),
            initializers={**model.graph.initializers, **closed},
        )
        return replace(model, graph=graph)


def fed_inputs(graph: Graph) -> list[ValueInfo]:
    """Return the inputs that must be fed: those without a default."""
    defaults = {*graph.initializers, *graph.sparse_initializers}
    return [info for info in graph.inputs if info.name not in defaults]


def _main(model: Model) -> NodeScope:
    return next(scope for scope in scopes(model) if scope.kind == "main")


def _without(values: Mapping[str, Value], gone: Collection[str]) -> dict[str, Value]:
    return {name: value for name, value in values.items() if name not in gone}
