"""The order on drafts that defines "smaller". A candidate that is not smaller is not tried."""

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.core.tensor import Tensor
from miscompile.graph.emit import emit
from miscompile.graph.model import Attribute, Function, Graph, Model, Node, TensorType, ValueType
from miscompile.triage.reduce.draft import Draft
from miscompile.triage.reduce.leaves import body_constants
from miscompile.triage.reduce.reduction import Cost

_PLAIN = {"float32": 0, "int64": 1, "int32": 2, "bool": 2, "float64": 3, "float16": 4, "uint8": 5, "int8": 5}
_UNUSUAL = 6
_SMALL = 16


def cost_of(draft: Draft) -> Cost:
    """Return the cost of `draft`.

    The cost counts, in falling weight: nodes (those of bodies and of called functions included), nodes of bodies,
    functions, outputs, inputs, feeds, attributes, elements, elements of outputs, ranks, unusual element types, unusual
    values, bytes.
    """
    graph = draft.graph
    functions = {(function.domain, function.name): function for function in draft.model.functions}
    tensors = [*graph.initializers.values(), *(value for feed in draft.feeds for value in feed.values())]
    tensors += [value for _, value in body_constants(graph)]
    attributes = list(_attributes(draft.model))
    tensors += [attribute.value for attribute in attributes if attribute.kind == "tensor"]
    infos = [info.type for info in (*graph.inputs, *graph.outputs) if isinstance(info.type, TensorType)]
    dtypes = [value.dtype for value in tensors] + [info.dtype for info in infos]
    return (
        sum(_weight(node, functions) for node in graph.nodes),
        sum(_weight(inner, functions) for node in graph.nodes for body in node.subgraphs() for inner in body.nodes),
        len(functions),
        len(graph.outputs),
        len(graph.inputs),
        len(draft.feeds),
        len(attributes),
        sum(value.array.size for value in tensors),
        sum(map(_size, (info.type for info in graph.outputs))),
        sum(value.array.ndim for value in tensors) + sum(len(info.shape or ()) for info in infos),
        sum(_PLAIN.get(dtype, _UNUSUAL) for dtype in dtypes),
        sum(map(oddity, tensors)) + sum(map(_attribute_oddity, attributes)),
        len(emit(draft.model)),
    )


def oddity(value: Tensor) -> int:
    """Return a rank of how unusual the elements are: 0 zeros, 1 ones, 2 one small integer, 3 counting up, 4 one element
    not zero, then whole numbers, quarters, hundredths, and others."""
    numbers = value.numbers()
    if not numbers.size or numbers.dtype.kind in "OUSc":
        return 0
    flat = numbers.ravel().astype(np.float64)
    if not flat.any():
        return 0
    whole = bool(np.isfinite(flat).all()) and bool((flat == np.floor(flat)).all())
    small = whole and bool((np.abs(flat) <= _SMALL).all())
    if small and (flat == flat[0]).all():
        return 1 if flat[0] == 1 else 2
    if whole and (flat == np.arange(flat.size)).all():
        return 3
    if small and np.count_nonzero(flat) == 1:
        return 4
    if whole:
        return 5 if small else 6
    if bool((flat * 4 == np.floor(flat * 4)).all()):
        return 7
    return 8 if np.array_equal(np.round(flat, 2).astype(numbers.dtype), numbers.ravel()) else 9


def _size(kind: ValueType | None) -> int:
    """Return the number of elements of a type; symbolic sizes count as one."""
    shape = kind.shape or () if isinstance(kind, TensorType) else ()
    return math.prod(size for size in shape if isinstance(size, int))


def _weight(node: Node, functions: dict[tuple[str, str], Function]) -> int:
    inner: Iterable[Node] = (item for body in node.subgraphs() for item in body.nodes)
    total = 1 + sum(_weight(item, functions) for item in inner)
    called = functions.get((node.domain, node.op))
    return total + (sum(_weight(item, functions) for item in called.nodes) if called else 0)


def _attributes(model: Model) -> Iterator[Attribute]:
    yield from _of_nodes(model.graph)
    for function in model.functions:
        for node in function.nodes:
            yield from _of_node(node)


def _of_nodes(graph: Graph) -> Iterator[Attribute]:
    for node in graph.nodes:
        yield from _of_node(node)


def _of_node(node: Node) -> Iterator[Attribute]:
    yield from node.attributes.values()
    for body in node.subgraphs():
        yield from _of_nodes(body)


def _attribute_oddity(attribute: Attribute) -> int:
    if attribute.kind in ("int", "float"):
        return _number(attribute.value)
    if attribute.kind in ("ints", "floats"):
        return sum(map(_number, attribute.value))
    return 0


@lru_cache(maxsize=4096)
def _number(value: float) -> int:
    if value in (0, 1):
        return int(value)
    whole = value == int(value) if abs(value) < DTYPES["int64"].high else False
    return 2 if whole and 0 < value <= _SMALL else 3
