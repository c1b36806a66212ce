"""Binding of symbolic sizes: a model as models with fixed sizes, with all constants as initialisers.

A model seldom states which sizes it accepts (an image must be large enough for five poolings, a length must be
divisible). Several bindings are therefore offered, and the caller finds one that works by running the model.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from miscompile.base.errors import ModelError
from miscompile.core.tensor import Tensor
from miscompile.graph.constant_nodes import constant_of
from miscompile.graph.inline import inline
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.prune import prune

BATCHES = (2, 1)
OTHERS = (8, 16, 4, 32, 64, 224, 1, 3)
"""Sizes tried for axes other than the batch, in order: short sequences first, then the sides of images."""

_MOST_WRITTEN = 6
_WRITTEN = range(2, 1025)
"""Sizes that a model may have in its constants: exporters write the sizes of the traced input into the model."""

_OTHER = ""
"""The name of a size without a name that is not in the first place."""

_BATCH_NAME = re.compile(r"(?i)^(n|b|batch.*|.*batch(_?size)?)$")


def normalised(model: Model) -> Model:
    """Return `model` without functions, dead nodes and Constant nodes, which become initialisers but for lists of text.

    Raises ModelError when functions are recursive, or cannot be inlined without a change of meaning.
    """
    flat = prune(inline(model))
    constants: dict[str, Tensor] = {}
    nodes: list[Node] = []
    for node in flat.graph.nodes:
        value = constant_of(node)
        if value is None or "value_strings" in node.attributes or "value_string" in node.attributes:
            nodes.append(node)
        else:
            constants[node.outputs[0]] = value
    graph = replace(flat.graph, nodes=tuple(nodes), initializers={**flat.graph.initializers, **constants}, types={})
    opsets = {"": flat.opset, **{domain: version for domain, version in flat.opsets.items() if domain != "ai.onnx"}}
    return replace(flat, graph=graph, opsets=opsets)


def bindings(model: Model) -> Iterator[Model]:
    """Yield `model` with fixed sizes at its inputs and open ones at its outputs, the likeliest binding first.

    Sizes named or placed like a batch are small; all others are equal, so that sizes that must agree do. Sizes without
    names may be batches in any place, as in the states of a recurrent model: they are also bound as such in the inputs
    after the first one. A model without symbolic sizes is yielded once. Raises ModelError when an input is no tensor,
    or not even its rank is known.
    """
    inputs = fed(model.graph)
    symbols = [name for info in inputs for name in _symbols(info)]
    if not symbols:
        yield _bound(model, BATCHES[0], OTHERS[0])
        return
    sizes = OTHERS[:1] if all(map(_is_batch, symbols)) else _likely_sizes(model.graph)
    for batch in BATCHES if any(map(_is_batch, symbols)) else BATCHES[:1]:
        for size in sizes:
            yield _bound(model, batch, size)
            if _OTHER in {name for info in inputs[1:] for name in _symbols(info)}:
                yield _bound(model, batch, size, batches=frozenset(info.name for info in inputs[1:]))


def _likely_sizes(graph: Graph) -> list[int]:
    """Return the sizes to try: the shortest sequence, then those in the model's constants, then others."""
    counts = Counter(
        int(number)
        for value in _constants(graph)
        if value.dtype == "int64" and value.array.size <= _MOST_WRITTEN
        for number in value.array.ravel()
    )
    written = [size for size, _ in counts.most_common() if size in _WRITTEN]
    return list(dict.fromkeys((OTHERS[0], *written[:_MOST_WRITTEN], *OTHERS)))


def _constants(graph: Graph) -> Iterator[Tensor]:
    """Yield the constants of a graph and of its bodies."""
    yield from graph.initializers.values()
    for node in graph.nodes:
        if (value := constant_of(node)) is not None:
            yield value
        for body in node.subgraphs():
            yield from _constants(body)


def fed(graph: Graph) -> tuple[ValueInfo, ...]:
    """Return the inputs that have no default."""
    return tuple(info for info in graph.inputs if info.name not in graph.initializers)


def _symbols(info: ValueInfo) -> list[str]:
    if not isinstance(info.type, TensorType) or info.type.shape is None:
        raise ModelError(f"input '{info.name}' is no tensor of known rank")
    return [_name(place, size) for place, size in enumerate(info.type.shape) if not isinstance(size, int)]


def _name(place: int, size: str | None) -> str:
    """Return the name of a symbolic size; one without a name is a batch if it comes first."""
    return size if size else ("batch" if place == 0 else _OTHER)


def _is_batch(name: str) -> bool:
    return _BATCH_NAME.match(name) is not None


def _bound(model: Model, batch: int, size: int, batches: frozenset[str] = frozenset()) -> Model:
    """Return `model` with these sizes; those without names are batches in the inputs called `batches`."""

    def is_batch(info: ValueInfo, name: str) -> bool:
        return _is_batch(name) or (name == _OTHER and info.name in batches)

    def fixed(info: ValueInfo) -> ValueInfo:
        assert isinstance(info.type, TensorType)
        assert info.type.shape is not None
        shape = []
        for place, dim in enumerate(info.type.shape):
            shape.append(dim if isinstance(dim, int) else batch if is_batch(info, _name(place, dim)) else size)
        return ValueInfo(info.name, TensorType(info.type.dtype, tuple(shape)))

    inputs = tuple(info if info.name in model.graph.initializers else fixed(info) for info in model.graph.inputs)
    outputs = tuple(ValueInfo(info.name, _open(info)) for info in model.graph.outputs)
    return replace(model, graph=replace(model.graph, inputs=inputs, outputs=outputs))


def _open(info: ValueInfo) -> TensorType | None:
    """Return the type of an output without its symbolic sizes, which inference then determines."""
    if not isinstance(info.type, TensorType) or info.type.shape is None:
        return info.type if isinstance(info.type, TensorType) else None
    return TensorType(info.type.dtype, tuple(size if isinstance(size, int) else None for size in info.type.shape))
