"""Types of every value of a model's main graph, by onnx's shape inference with data propagation."""

import onnx

from miscompile.base.errors import ModelError
from miscompile.graph.careful import must_survive
from miscompile.graph.decode import dtype_name
from miscompile.graph.emit import model_proto
from miscompile.graph.model import Model, SparseTensorType, TensorType, ValueType
from miscompile.graph.read import read_type


def value_types(model: Model, *, strict: bool = True) -> dict[str, ValueType]:
    """Return the types of inputs, initialisers, inner values and outputs of the main graph, by name.

    Declared types are merged with inferred ones. Values of unknown type (outputs of foreign operators) are missing.
    Raises ModelError when `strict` and a node breaks its operator's rules or contradicts a declared type; otherwise
    inference ignores such a node.
    """
    return inferred_types(model_proto(model), strict=strict)


def static_types(model: Model) -> dict[str, TensorType]:
    """Return those of the types of `value_types` that are dense tensors of fixed sizes; broken nodes are ignored."""
    types = value_types(model, strict=False)
    return {name: kind for name, kind in types.items() if isinstance(kind, TensorType) and kind.static}


def inferred_types(proto: onnx.ModelProto, *, strict: bool = True) -> dict[str, ValueType]:
    """Return the types of a ModelProto's values, as `value_types` does."""
    found = inferred_graph(proto, strict=strict)
    types: dict[str, ValueType] = {}
    for tensor in found.initializer:
        types[tensor.name] = TensorType(dtype_name(tensor.data_type), tuple(tensor.dims))
    for sparse in found.sparse_initializer:
        types[sparse.values.name] = SparseTensorType(dtype_name(sparse.values.data_type), tuple(sparse.dims))
    for info in (*found.value_info, *found.output, *found.input):
        known = read_type(info.type)
        if known is not None:
            types[info.name] = _merged(types.get(info.name), known)
    return types


def inferred_graph(proto: onnx.ModelProto, *, strict: bool = True) -> onnx.GraphProto:
    """Return the main graph of a ModelProto with the types that onnx infers among its value infos.

    onnx's data propagation mistakes some tensors for shapes and then rejects valid models. Inference is therefore
    repeated without it for a rejected model. Raises ModelError as `value_types` does.
    """
    try:
        return _infer(proto, strict=strict, data_prop=True)
    except ModelError:
        return _infer(proto, strict=strict, data_prop=False)


def _infer(proto: onnx.ModelProto, *, strict: bool, data_prop: bool) -> onnx.GraphProto:
    def call() -> onnx.ModelProto:
        return onnx.shape_inference.infer_shapes(proto, check_type=strict, strict_mode=strict, data_prop=data_prop)

    must_survive(call)
    try:
        done = call()
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError) as error:
        raise ModelError(f"types do not fit: {brief(error)}") from None
    return done.graph


def brief(error: BaseException) -> str:
    """Return the lines of an onnx error as one line, without the decoration around its message."""
    lines = [line.strip() for line in str(error).splitlines()]
    return " ".join(line for line in lines if line and not line.startswith("==>"))[:500]


def _merged(first: ValueType | None, second: ValueType) -> ValueType:
    """Return `first` where `second` has no shape, because an initialiser has all of its sizes; otherwise `second`."""
    if isinstance(first, TensorType | SparseTensorType) and type(first) is type(second) and second.shape is None:
        return first
    return second
