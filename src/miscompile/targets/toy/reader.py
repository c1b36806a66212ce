"""Conversion of a serialised ModelProto to the toy's program. No other module of the toy uses onnx."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import inliner, numpy_helper, shape_inference

from miscompile.base.dtypes import BY_CODE, DTYPES
from miscompile.core.tensor import Array
from miscompile.targets.toy.ir import Code, ToyCall, ToyError, ToyShape, ToyUnsupported, Type
from miscompile.targets.toy.kernels.table import OPERATORS, check_form

DTYPES_OF_TOY = ("float32", "float16", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
                 "uint64", "bool")  # fmt: skip
"""The element types that the toy supports, which are those of numpy."""

MIN_OPSET, MAX_OPSET = 13, 23


def read(payload: bytes, operators: Collection[str] = OPERATORS) -> Code:
    """Parse, check and lower a serialised ModelProto, which may use `operators` of the standard domain.

    Raises ToyUnsupported for an operator, element type, opset or construct that the toy lacks, and ToyError for an
    invalid model: bytes that do not parse, values without definition, types that contradict their operator.
    """
    try:
        model = onnx.load_model_from_string(payload)
        if model.functions:
            model = inliner.inline_local_functions(model)
    except Exception as error:  # noqa: BLE001 - protobuf and onnx raise types of their own for broken bytes
        raise _broken(error) from None
    _check_support(model.graph, _opsets(model), operators)
    try:
        model = shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except (shape_inference.InferenceError, RuntimeError, ValueError) as error:
        raise _broken(error) from None
    return _lower(model.graph, {})


def _broken(error: Exception) -> ToyError:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return ToyError(f"toy cannot read this model: {lines[0]}")


def _opsets(model: Any) -> list[int]:  # noqa: ANN401 - a protobuf message
    """Return the imported versions of the standard domain. Raises ToyUnsupported for one that the toy does not know."""
    versions = [entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")]
    for version in versions:
        if not MIN_OPSET <= version <= MAX_OPSET:
            raise ToyUnsupported(f"opset {version}; it knows {MIN_OPSET} to {MAX_OPSET}")
    return versions


def _check_support(
    graph: Any,  # noqa: ANN401 - a protobuf message
    versions: list[int],
    operators: Collection[str],
) -> None:
    if graph.sparse_initializer:
        raise ToyUnsupported("sparse initializers")
    for node in graph.node:
        if node.domain not in ("", "ai.onnx"):
            raise ToyUnsupported(f"{node.domain}.{node.op_type}")
        if node.op_type != "Constant":
            call = ToyCall(node.op_type, tuple(node.input), tuple(node.output), _attributes(node.attribute))
            check_form(call, operators)
        if not versions:
            raise ToyError("toy cannot read this model: it imports no opset of the standard domain")
        if node.op_type == "If":
            for branch in node.attribute:
                _check_support(branch.g, versions, operators)


def _lower(graph: Any, outer: Mapping[str, Type]) -> Code:  # noqa: ANN401 - a protobuf message
    """Lower a graph. A body becomes a program; its inputs are those of the `outer` values that it reads."""
    constants = {tensor.name: _array(tensor) for tensor in graph.initializer}
    calls = []
    for node in graph.node:
        if node.op_type == "Constant":
            constants[node.output[0]] = _constant(node)
    types = {**outer, **{name: Type(value.dtype, tuple(value.shape)) for name, value in constants.items()}}
    for info in (*graph.input, *graph.value_info, *graph.output):
        if info.name not in constants:
            types[info.name] = _type(info)
    for node in graph.node:
        if node.op_type == "If":
            calls.append(_branches(node, types))
        elif node.op_type != "Constant":
            calls.append(ToyCall(node.op_type, tuple(node.input), tuple(node.output), _attributes(node.attribute)))
    inputs = tuple(info.name for info in graph.input if info.name not in constants)
    outputs = [info.name for info in graph.output]
    inputs += tuple(name for name in _free(calls, outputs, {*inputs, *constants}) if name in outer)
    _check_definitions(inputs, outputs, calls, constants)
    code = Code(inputs, outputs, calls, constants, types)
    for call in calls:
        check_operands(code, call)
    return code


def _free(calls: list[ToyCall], outputs: list[str], known: set[str]) -> list[str]:
    """Return the names that calls and outputs read and nothing in the graph defines."""
    defined = known | {name for call in calls for name in call.outputs}
    read = [*(name for call in calls for name in call.inputs if name), *outputs]
    return list(dict.fromkeys(name for name in read if name not in defined))


def _branches(node: Any, types: Mapping[str, Type]) -> ToyCall:  # noqa: ANN401 - a protobuf message
    """Lower an If: what its branches read from outside becomes operands, the same ones for both."""
    bodies = {proto.name: _lower(proto.g, types) for proto in node.attribute}
    captured = tuple(dict.fromkeys(name for body in bodies.values() for name in body.inputs))
    for body in bodies.values():
        body.inputs = captured
    return ToyCall("If", (*node.input, *captured), tuple(node.output), bodies)


def _check_definitions(
    inputs: Iterable[str], outputs: list[str], calls: list[ToyCall], constants: Iterable[str]
) -> None:
    """Raise ToyError unless every value is defined exactly once, before its use, and the program has an output."""
    if not outputs:
        raise ToyError("toy cannot read this model: it has no outputs")
    defined = {*inputs, *constants}
    for call in calls:
        for name in call.inputs:
            if name and name not in defined:
                raise ToyError(f"toy cannot read this model: value '{name}' is used before it is defined")
        for name in call.outputs:
            if name in defined:
                raise ToyError(f"toy cannot read this model: value '{name}' is defined twice")
        defined.update(filter(None, call.outputs))
    for name in outputs:
        if name not in defined:
            raise ToyError(f"toy cannot read this model: output '{name}' is not defined")


def _dtype(code: int) -> "np.dtype[Any]":
    found = BY_CODE.get(code)
    if found is None or found.name not in DTYPES_OF_TOY:
        raise ToyUnsupported(f"element type {found.name if found else code}")
    return DTYPES[found.name].storage


def _array(tensor: Any) -> Array:  # noqa: ANN401 - a protobuf message
    dtype = _dtype(tensor.data_type)
    try:
        return np.asarray(numpy_helper.to_array(tensor), dtype)
    except (ValueError, TypeError) as error:
        raise _broken(error) from None


def _type(info: Any) -> Type:  # noqa: ANN401 - a protobuf message
    if info.type.WhichOneof("value") is None:
        raise ToyError(f"toy cannot read this model: value '{info.name}' has no type")
    if info.type.WhichOneof("value") != "tensor_type":
        raise ToyUnsupported(f"values of kind {info.type.WhichOneof('value')}")
    body = info.type.tensor_type
    dtype = _dtype(body.elem_type)
    if not body.HasField("shape"):
        return Type(dtype, None)
    return Type(dtype, tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in body.shape.dim))


def _constant(node: Any) -> Array:  # noqa: ANN401 - a protobuf message
    attributes = _attributes(node.attribute)
    for name, dtype in (("value_float", np.float32), ("value_floats", np.float32), ("value_int", np.int64)):
        if name in attributes:
            return np.array(attributes[name], dtype)
    if "value_ints" in attributes:
        return np.array(attributes["value_ints"], np.int64)
    if "value" not in attributes:
        raise ToyUnsupported("this form of Constant")
    value = attributes["value"]
    assert isinstance(value, np.ndarray)
    return value


def _attributes(protos: Any) -> dict[str, Any]:  # noqa: ANN401 - protobuf messages
    found: dict[str, Any] = {}
    for proto in protos:
        if proto.type == onnx.AttributeProto.INT:
            found[proto.name] = int(proto.i)
        elif proto.type == onnx.AttributeProto.FLOAT:
            found[proto.name] = float(proto.f)
        elif proto.type == onnx.AttributeProto.STRING:
            found[proto.name] = proto.s.decode("utf-8", "replace")
        elif proto.type == onnx.AttributeProto.INTS:
            found[proto.name] = tuple(map(int, proto.ints))
        elif proto.type == onnx.AttributeProto.FLOATS:
            found[proto.name] = tuple(map(float, proto.floats))
        elif proto.type == onnx.AttributeProto.GRAPH:
            found[proto.name] = proto.g
        elif proto.type == onnx.AttributeProto.TENSOR:
            found[proto.name] = _array(proto.t)
        else:
            raise ToyUnsupported(f"attributes such as {proto.name}")
    if found.get("output_dtype") == 0:
        del found["output_dtype"]  # 0 is the element type that means none
    for name in ("to", "output_dtype"):
        if isinstance(found.get(name), int):
            found[name] = _dtype(found[name])
    return found


def check_operands(code: Code, call: ToyCall) -> None:
    """Raise ToyError when the known shapes of `call`'s operands break its operator's rules."""
    shapes = [code.shape(name) if name else None for name in call.inputs]
    fault = ""
    if call.op == "Conv":
        fault = _conv(call, shapes)
    elif call.op == "Gemm" and len(shapes) > 2:
        result = code.shape(call.out)
        if shapes[2] is not None and result is not None and not broadcasts_into(shapes[2], result):
            fault = f"C {list(shapes[2])} does not broadcast into {list(result)}"
    elif call.op == "Clip" and any(shape is not None and any(size != 1 for size in shape) for shape in shapes[1:]):
        fault = "a bound has several elements"
    elif call.op == "Transpose":
        fault = _transpose(call, shapes[0])
    if fault:
        raise ToyError(f"toy cannot read this model: {call.op}: {fault}")


def _transpose(call: ToyCall, shape: ToyShape | None) -> str:
    perm = call.get("perm")
    if perm is None or shape is None or sorted(perm) == list(range(len(shape))):
        return ""
    return f"perm {list(perm)} is no permutation of {len(shape)} axes"


def _conv(call: ToyCall, shapes: list[ToyShape | None]) -> str:
    """Channels of the operand are those of the weights times the groups; a bias has one element per output channel."""
    data, weight = shapes[:2]
    bias = shapes[2] if len(shapes) > 2 else None
    if data is None or weight is None:
        return ""
    group = call.get("group", 1)
    if len(data) != len(weight) or group < 1 or data[1] != weight[1] * group or weight[0] % group:
        return f"operand {list(data)} does not fit weights {list(weight)} in {group} groups"
    return "" if bias in (None, weight[:1]) else f"bias {list(bias or ())} does not fit weights {list(weight)}"


def broadcasts_into(small: ToyShape, large: ToyShape) -> bool:
    """Tell whether a value of shape `small` can be broadcast to `large`."""
    return len(small) <= len(large) and all(a in (1, b) for a, b in zip(small[::-1], large[::-1], strict=False))
