"""Data propagation: elements of small integer values computed from static sizes and known elements.

Exporters compute shapes in the graph (Shape, Gather, Concat, Reshape). Because a generated graph has fixed sizes, the
elements are known while it is built, and the types of later nodes depend on them, as in onnx's data propagation
(https://onnx.ai/onnx/repo-docs/ShapeInference.html).
"""

import math
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.core.tensor import Array, Tensor
from miscompile.graph.emit import emit
from miscompile.graph.model import Attribute, Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.structural import STRUCTURAL_SIZE
from miscompile.ops.definitions.evaluator import evaluator
from miscompile.ops.registry import having
from miscompile.ops.spec import Call, Operand

_DTYPES = frozenset({"int64", "int32", "bool"})


def elements_of(call: Call, results: Sequence[Operand], opset: int) -> Tensor | None:
    """Return the elements of the result of a call on known integers or sizes; None for other calls.

    The call must be defined. Results of more than 64 elements are not computed, because they are no shapes.
    """
    if call.domain or not may_be_known(call.op, call.inputs, results):
        return None
    sizes = call.op in having("reads-shape")
    given = tuple(None if operand is None else _given(operand, sizes) for operand in call.inputs)
    attributes = tuple(call.attributes.items())
    try:
        found = _computed(call.op, opset, tuple(map(_written, attributes)), given, _Kept(call.attributes))
    except (ValueError, IndexError, TypeError, RuntimeError):
        return None  # the evaluator does not support this call; the elements stay unknown
    fits = found.dtype == DTYPES[results[0].dtype].storage and found.shape == results[0].shape
    return Tensor(results[0].dtype, found) if fits else None


def may_be_known(op: str, operands: Sequence[Operand | None], results: Sequence[Operand]) -> bool:
    """Tell whether `elements_of` may find the elements of a call's result."""
    if len(results) != 1 or results[0].dtype not in _DTYPES or math.prod(results[0].shape) > STRUCTURAL_SIZE:
        return False
    return op in having("reads-shape") or (op in having("shape-arithmetic") and all(map(_is_known, operands)))


def _is_known(operand: Operand | None) -> bool:
    return operand is None or (
        operand.dtype in _DTYPES and operand.value is not None and operand.value.size <= STRUCTURAL_SIZE
    )


OperandKey = tuple[str, tuple[int, ...], bytes | None]
"""Dtype, shape and elements of an operand; no elements where only the shape matters."""


def _given(operand: Operand, sizes: bool) -> OperandKey:
    elements = None if sizes or operand.value is None else operand.value.tobytes()
    return "bool" if sizes else operand.dtype, operand.shape, elements


class _Kept:
    """Attributes together with their text, by which alone calls are compared."""

    def __init__(self, attributes: Mapping[str, Attribute]) -> None:
        self.attributes = attributes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Kept)

    def __hash__(self) -> int:
        return 0


def _written(item: tuple[str, Attribute]) -> tuple[str, str]:
    name, given = item
    return name, repr(given.value.array.tolist()) if given.kind == "tensor" else repr(given.value)


@lru_cache(1 << 12)
def _computed(
    op: str, opset: int, written: tuple[tuple[str, str], ...], given: tuple[OperandKey | None, ...], kept: _Kept
) -> Array:
    del written  # a part of the key only
    names = tuple("" if value is None else f"x{place}" for place, value in enumerate(given))
    node = Node(op, names, ("y",), kept.attributes)
    feed = {f"x{place}": _array(value) for place, value in enumerate(given) if value is not None}
    inputs = tuple(ValueInfo(name, TensorType(given[int(name[1:])][0], None)) for name in feed)  # type: ignore[index]
    graph = Graph("known", inputs, (ValueInfo("y", None),), (node,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(evaluator(emit(Model(graph, {"": opset}))).run(None, feed)[0])


def _array(value: OperandKey) -> Array:
    dtype, shape, elements = value
    storage = DTYPES[dtype].storage
    if elements is None:
        return np.broadcast_to(np.zeros((), storage), shape)
    return np.frombuffer(elements, storage).reshape(shape)
