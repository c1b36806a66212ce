"""The node cases of onnx's backend tests: small models with inputs and expected outputs.

See https://onnx.ai/onnx/repo-docs/OnnxBackendTest.html. Node cases with sequences, optionals or sparse tensors have no
`Case`.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import defs

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import ModelError
from miscompile.core.case import Case, Feed
from miscompile.core.tensor import Tensor
from miscompile.graph.emit import to_program
from miscompile.graph.randomness import RANDOM
from miscompile.graph.read import read


@dataclass(frozen=True, slots=True)
class NodeCase:
    """One case. `case` is None when it has values that are no dense tensors; `expected` holds one tuple a feed.

    `op` is the operator under test, `version` that of its schema, `dtype` the element type of its first tensor.
    `rtol` and `atol` are onnx's own tolerances. With `random`, only types and shapes of the results are fixed.
    """

    name: str
    op: str
    version: int
    dtype: str
    case: Case | None
    expected: tuple[Feed, ...]
    rtol: float
    atol: float
    random: bool


def node_cases(max_ir_version: int = 10) -> Iterator[NodeCase]:
    """Yield every node case; a newer IR version than `max_ir_version` is replaced by that one.

    Nothing in these models depends on the IR version, because onnx always sets its newest.
    """
    from onnx.backend.test.case.node import collect_testcases  # takes a second, and only this function needs it

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some expected outputs overflow on purpose
        items = collect_testcases(None)
    for item in items:
        yield _node_case(item, max_ir_version)


def _node_case(item: Any, max_ir_version: int) -> NodeCase:  # noqa: ANN401 - onnx's own class
    model = onnx.ModelProto.FromString(item.model.SerializeToString())
    model.ir_version = min(model.ir_version, max_ir_version)
    op = _operator(item.name, model)
    domain = next((node.domain for node in model.graph.node if node.op_type == op), "")
    opset = next((entry.version for entry in model.opset_import if entry.domain == domain), 1)
    feeds, expected = _tensors(item.data_sets)
    case: Case | None = None
    if feeds is not None and expected is not None:
        try:
            case = Case(to_program(read(model.SerializeToString())), feeds, {"node_case": item.name})
        except ModelError:
            case = None
    first = next((tensor for feed in (*(feeds or ()), *(expected or ())) for tensor in feed), None)
    return NodeCase(
        item.name,
        op,
        _version(op, opset, domain),
        first.dtype if first is not None else "",
        case,
        expected or (),
        item.rtol,
        item.atol,
        any(_is_random(one) for one in model.graph.node),
    )


def _operator(name: str, model: onnx.ModelProto) -> str:
    """Return the operator under test; for an expanded function it is in the case's name."""
    if len(model.graph.node) == 1:
        return str(model.graph.node[0].op_type)
    plain = name.removeprefix("test_").replace("_", "").lower()
    named = [schema.name for schema in defs.get_all_schemas() if plain.startswith(schema.name.lower())]
    present = [node.op_type for node in model.graph.node if node.op_type.lower() in plain]
    return str(max(named or present or [model.graph.node[-1].op_type], key=len))


def _version(op: str, opset: int, domain: str) -> int:
    try:
        return int(defs.get_schema(op, opset, domain).since_version)
    except defs.SchemaError:
        return opset


def _is_random(node: onnx.NodeProto) -> bool:
    if node.op_type == "Dropout":
        return len(node.input) > 2
    return node.op_type in RANDOM


def _tensors(sets: Any) -> tuple[tuple[Feed, ...] | None, tuple[Feed, ...] | None]:  # noqa: ANN401 - onnx's own lists
    try:
        feeds = tuple(tuple(_tensor(value) for value in inputs) for inputs, _ in sets)
        expected = tuple(tuple(_tensor(value) for value in outputs) for _, outputs in sets)
    except TypeError:
        return None, None
    return feeds, expected


_FOREIGN = {
    np.dtype(getattr(ml_dtypes, theirs)): ours
    for ours, theirs in {
        "bfloat16": "bfloat16",
        "float8e4m3fn": "float8_e4m3fn",
        "float8e4m3fnuz": "float8_e4m3fnuz",
        "float8e5m2": "float8_e5m2",
        "float8e5m2fnuz": "float8_e5m2fnuz",
        "int4": "int4",
        "uint4": "uint4",
    }.items()
    if ours in DTYPES
}


def _tensor(value: Any) -> Tensor:  # noqa: ANN401 - whatever onnx's cases are made of
    """Wrap an array; raises TypeError unless it is a dense tensor of a known type."""
    if not isinstance(value, np.ndarray | np.generic):
        raise TypeError("no dense tensor")
    array = np.asarray(value)
    if array.dtype.kind in "OUS":
        return Tensor("string", array.astype(object))
    name = _FOREIGN.get(array.dtype)
    if name is not None:
        return Tensor(name, np.ascontiguousarray(array).view(DTYPES[name].storage).reshape(array.shape))
    if array.dtype.name not in DTYPES:
        raise TypeError(f"elements of type {array.dtype}")
    return Tensor(array.dtype.name, array)
