"""onnx's own node cases as cases of the tool, with the outputs that onnx expects."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

from miscompile.base.dtypes import BY_CODE, DTYPES
from miscompile.core.case import Case, Feed, Port, Program
from miscompile.core.tensor import Tensor
from miscompile.graph.bodies import CONTROL
from miscompile.ops.registry import specs
from miscompile.targets.lowering.table import load
from miscompile.targets.xla.program import LOWERINGS


@dataclass(frozen=True, slots=True)
class NodeCase:
    """A case by its name in onnx, and the outputs for its only feed."""

    name: str
    op: str
    case: Case
    expected: Feed


def node_cases() -> Iterator[NodeCase]:
    """Yield the cases whose operators all have specs; operands with a lowering as constants only become constants."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # making the expected outputs overflows on purpose in places
        found = collect_testcases(None)
    for item in found:
        nodes = item.model.graph.node
        known = all(node.op_type in specs() or node.op_type in ("Constant", *CONTROL) for node in nodes)
        if known and "_expanded" not in item.name and all(node.domain in ("", "ai.onnx") for node in nodes):
            inputs, outputs = item.data_sets[0]
            if not any(isinstance(value, list) or value is None for value in (*inputs, *outputs)):
                yield _read(item.name, item.model, inputs, outputs)


def _read(name: str, proto: onnx.ModelProto, inputs: Any, outputs: Any) -> NodeCase:
    model = onnx.ModelProto.FromString(proto.SerializeToString())
    graph, table = model.graph, load(LOWERINGS).operators
    static = {
        node.input[place]
        for node in graph.node
        if node.op_type in table
        for place in table[node.op_type].static
        if place < len(node.input)
    }
    fixed = {constant.name for constant in graph.initializer}
    ports, feed, given = [], [], [info for info in graph.input if info.name not in fixed]
    for info, value in zip(given, inputs, strict=True):
        tensor = _tensor(value, info)
        if info.name in static:
            code, data = DTYPES[tensor.dtype].code, tensor.array.tobytes()
            graph.initializer.append(onnx.helper.make_tensor(info.name, code, tensor.shape, data, raw=True))
            graph.input.remove(info)
        else:
            ports.append(Port(info.name, tensor.dtype, tensor.shape))
            feed.append(tensor)
    expected = tuple(_tensor(value, info) for value, info in zip(outputs, graph.output, strict=True))
    results = tuple(Port(info.name, value.dtype, None) for info, value in zip(graph.output, expected, strict=True))
    program = Program("onnx", model.SerializeToString(), tuple(ports), results)
    return NodeCase(name, graph.node[-1].op_type, Case(program, (tuple(feed),)), expected)


def _tensor(value: Any, info: onnx.ValueInfoProto) -> Tensor:
    dtype = BY_CODE[info.type.tensor_type.elem_type].name
    array = np.asarray(numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value)
    storage = DTYPES[dtype].storage
    if array.dtype == storage or dtype == "string":
        return Tensor(dtype, array.astype(object) if dtype == "string" else array)
    if array.dtype.itemsize == storage.itemsize and DTYPES[dtype].bits >= 8:
        return Tensor(dtype, array.view(storage))
    return Tensor(dtype, array.astype(np.int8).view(np.uint8))


TOLERANCES = {"float64": (1e-5, 1e-6), "float32": (1e-3, 1e-5), "float16": (1e-2, 5e-3), "bfloat16": (5e-2, 2e-2)}
"""Relative and absolute ones; some cases were computed in another order or precision."""


def difference(found: Tensor | None, wanted: Tensor) -> str:
    """Say how an output differs from the expected one; an empty text when it does not."""
    if found is None or (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        return f"{found and (found.dtype, found.shape)} instead of {(wanted.dtype, wanted.shape)}"
    left, right = _numbers(found), _numbers(wanted)
    relative, absolute = TOLERANCES.get(wanted.dtype, (0.0, 0.0))
    floats = wanted.dtype in TOLERANCES
    floats = floats or wanted.dtype in FLOATS_OF_8_BITS
    same = np.allclose(left, right, relative, absolute, equal_nan=True) if floats else np.array_equal(left, right)
    return "" if same else f"{left.tolist()} instead of {right.tolist()}"


FLOATS_OF_8_BITS = {
    "float8e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8e5m2": ml_dtypes.float8_e5m2,
    "float8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
}


def _numbers(value: Tensor) -> Any:
    kind = FLOATS_OF_8_BITS.get(value.dtype)
    return value.numbers() if kind is None else value.array.view(kind).astype(np.float32)
