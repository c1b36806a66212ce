"""Calls of single operators with what they must give: the node cases of the ONNX standard, and draws of the specs."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

from miscompile.base.dtypes import BY_CODE, NUMBERS
from miscompile.base.errors import RejectedDraft
from miscompile.core.case import Case, Port, Program
from miscompile.core.tensor import Array, Tensor, tensor
from miscompile.graph.emit import emit
from miscompile.ops.draws import Draw, draw_call
from miscompile.ops.registry import admitted, specs
from miscompile.targets.lowering.table import Table, load
from miscompile.targets.lowering.torch_program import LOWERINGS

TOLERANCE = {"float64": 1e-6, "float32": 2e-4, "float16": 1e-2, "bfloat16": 6e-2}
"""Relative error, to which a fifth of it counts by the largest element: sums cancel."""


@dataclass(frozen=True)
class Call:
    """A case of one operator; `expected` are the elements of its outputs, None when another compiler must say."""

    name: str
    op: str
    case: Case
    expected: tuple[Array, ...] | None = None


def table() -> Table:
    return load(LOWERINGS)


def node_cases() -> Iterator[Call]:
    """The node cases of all lowered operators whose element types numpy and bfloat16 cover; expansions left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the cases are computed as they are collected, some with overflow
        items = collect_testcases(None)
    for item in items:
        graph = item.model.graph
        if len(graph.node) != 1 or "_expanded" in item.name or graph.node[0].op_type not in table().operators:
            continue
        for inputs, outputs in item.data_sets:
            made = _node_case(item.name, item.model, inputs, outputs)
            if made is not None:
                yield made


def _node_case(name: str, model: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> Call | None:
    graph, kinds = model.graph, (*model.graph.input, *model.graph.output)
    dtypes = [BY_CODE[kind.type.tensor_type.elem_type].name for kind in kinds if kind.type.HasField("tensor_type")]
    if len(dtypes) < len(kinds) or not set(dtypes) <= {*NUMBERS, "bool"}:
        return None
    values = [_tensor(value, dtype) for value, dtype in zip(inputs, dtypes, strict=False)]
    node = graph.node[0]
    fixed = {node.input[place] for place in table().operators[node.op_type].static if place < len(node.input)}
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    del changed.graph.input[:]
    ports, feed = [], []
    for kind, value in zip(graph.input, values, strict=True):
        if kind.name in fixed:
            changed.graph.initializer.append(_initializer(kind.name, value))
        else:
            changed.graph.input.append(kind)
            ports.append(Port(kind.name, value.dtype, value.shape))
            feed.append(value)
    wanted = [_tensor(value, dtype) for value, dtype in zip(outputs, dtypes[len(inputs) :], strict=True)]
    shown = tuple(Port(kind.name, value.dtype, value.shape) for kind, value in zip(graph.output, wanted, strict=True))
    program = Program("onnx", changed.SerializeToString(), tuple(ports), shown)
    return Call(name, node.op_type, Case(program, (tuple(feed),)), tuple(value.numbers() for value in wanted))


def _tensor(value: Any, dtype: str) -> Tensor:
    array = numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)
    return tensor(array.astype(np.float32), dtype) if dtype == "bfloat16" else Tensor(dtype, array)


def _initializer(name: str, value: Tensor) -> Any:
    code = onnx.TensorProto.BFLOAT16 if value.dtype == "bfloat16" else numpy_helper.from_array(value.array).data_type
    return onnx.helper.make_tensor(name, code, value.shape, value.array.tobytes(), raw=True)


NEWEST = 28
"""The opset of draws of operators that came after the others."""


def draws(count: int, seed: int, dtypes: int = 1, opsets: Sequence[int] = (13, 18, 21, 22)) -> Iterator[Call]:
    """`count` draws of every lowered operator for its first element types; static operands are constants."""
    for op, spec in specs().items():
        for dtype in spec.dtypes[:dtypes]:
            late = spec.since > max(opsets)
            allowed = [opset for opset in ((NEWEST,) if late else opsets) if dtype in admitted(spec, opset)]
            for index in range(count if allowed else 0):
                opset = allowed[(index + len(op)) % len(allowed)]
                try:
                    draw = draw_call(spec, dtype, opset, seed=seed, index=index)
                except RejectedDraft:
                    continue
                yield Call(f"{op} of {dtype}, opset {opset}, draw {index}", op, _case(draw, op))


def _case(draw: Draw, op: str) -> Case:
    operands = draw.call.inputs
    static = table().operators[op].static
    fixed = {x.name for place, x in enumerate(operands) if place in static and x is not None}
    draw = replace(draw, inputs=draw.inputs - fixed)
    free = {x.name: x for x in operands if x is not None and x.name in draw.inputs}
    ports = tuple(Port(x.name, x.dtype, x.shape) for x in free.values())
    outputs = tuple(Port(f"y{place}", kind.dtype, kind.shape) for place, kind in enumerate(draw.types))
    return Case(Program("onnx", emit(draw.model()), ports, outputs), (tuple(draw.values[name] for name in free),))


def difference(found: Tensor | None, wanted: Array) -> str:
    """Say how `found` differs from `wanted`; nothing when it does not by more than its type's rounding explains."""
    if found is None:
        return "missing"
    got, tolerance = found.numbers(), TOLERANCE.get(found.dtype, 0.0)
    if got.shape != wanted.shape or got.dtype != wanted.dtype:
        return f"{got.dtype}{list(got.shape)} instead of {wanted.dtype}{list(wanted.shape)}"
    if not tolerance:
        return "" if np.array_equal(got, wanted) else f"{got.ravel()[:6]} instead of {wanted.ravel()[:6]}"
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    reach = np.abs(b[np.isfinite(b)]).max(initial=0.0)
    with np.errstate(invalid="ignore"):
        near = np.abs(a - b) <= tolerance * (np.abs(b) + 0.2 * reach + 1e-3)
    near |= (a == b) | (np.isnan(a) & np.isnan(b))
    return "" if near.all() else f"{a[~near][:6]} instead of {b[~near][:6]}"
