"""Emission of models as ModelProto. It does not use onnx's helpers, because they take most of the time."""

from collections.abc import Mapping

import onnx

from miscompile.base.dtypes import DTYPES
from miscompile.core.case import Dim
from miscompile.core.tensor import Tensor
from miscompile.graph.model import (
    Attribute,
    Function,
    Graph,
    MapType,
    Model,
    Node,
    OptionalType,
    SequenceType,
    SparseTensor,
    SparseTensorType,
    TensorType,
    ValueType,
)
from miscompile.graph.packing import is_packed, pack
from miscompile.graph.wire import model_bytes

_KINDS = {
    "float": 1, "int": 2, "string": 3, "tensor": 4, "graph": 5, "floats": 6, "ints": 7, "strings": 8, "tensors": 9,
    "graphs": 10, "sparse": 11, "sparses": 12, "type": 13, "types": 14,
}  # fmt: skip
_PACKED = frozenset(dtype for dtype in DTYPES if is_packed(dtype))


def emit(model: Model) -> bytes:
    """Return the serialised ModelProto of `model`."""
    return model_bytes(model) or bytes(model_proto(model).SerializeToString())


def model_proto(model: Model) -> onnx.ModelProto:
    """Return `model` as a ModelProto."""
    proto = onnx.ModelProto()
    proto.ir_version = model.ir_version
    proto.producer_name = "miscompile"
    _opsets(proto.opset_import, model.opsets)
    _graph(proto.graph, model.graph)
    for function in model.functions:
        _function(proto.functions.add(), function)
    return proto


def node_proto(node: Node) -> onnx.NodeProto:
    """Return `node` as a NodeProto."""
    proto = onnx.NodeProto()
    _node(proto, node)
    return proto


def type_proto(value_type: ValueType) -> onnx.TypeProto:
    """Return `value_type` as a TypeProto."""
    proto = onnx.TypeProto()
    _type(proto, value_type)
    return proto


def tensor_proto(value: Tensor, name: str = "") -> onnx.TensorProto:
    """Return `value` as a TensorProto named `name`."""
    proto = onnx.TensorProto()
    _tensor(proto, name, value)
    return proto


def graph_proto(graph: Graph) -> onnx.GraphProto:
    """Return `graph` as a GraphProto."""
    proto = onnx.GraphProto()
    _graph(proto, graph)
    return proto


def _opsets(imports, opsets: Mapping[str, int]) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    for domain, version in opsets.items():
        entry = imports.add()
        entry.domain = domain
        entry.version = version


def _graph(proto: onnx.GraphProto, graph: Graph) -> None:
    proto.name = graph.name
    for node in graph.nodes:
        _node(proto.node.add(), node)
    for infos, target in ((graph.inputs, proto.input), (graph.outputs, proto.output)):
        for info in infos:
            entry = target.add()
            entry.name = info.name
            if info.type is not None:
                _type(entry.type, info.type)
    for name, value in graph.initializers.items():
        _tensor(proto.initializer.add(), name, value)
    for name, sparse in graph.sparse_initializers.items():
        _sparse(proto.sparse_initializer.add(), sparse, name)
    for name, value_type in graph.types.items():
        entry = proto.value_info.add()
        entry.name = name
        _type(entry.type, value_type)


def _node(proto: onnx.NodeProto, node: Node) -> None:
    proto.op_type = node.op
    proto.input.extend(node.inputs)
    proto.output.extend(node.outputs)
    if node.domain:
        proto.domain = node.domain
    if node.name:
        proto.name = node.name
    if node.overload:
        proto.overload = node.overload
    for name, attribute in node.attributes.items():
        _attribute(proto.attribute.add(), name, attribute)


def _function(proto: onnx.FunctionProto, function: Function) -> None:
    proto.domain = function.domain
    proto.name = function.name
    if function.overload:
        proto.overload = function.overload
    proto.input.extend(function.inputs)
    proto.output.extend(function.outputs)
    proto.attribute.extend(function.attributes)
    for name, attribute in function.defaults.items():
        _attribute(proto.attribute_proto.add(), name, attribute)
    _opsets(proto.opset_import, function.opsets)
    for node in function.nodes:
        _node(proto.node.add(), node)
    for name, value_type in function.types.items():
        entry = proto.value_info.add()
        entry.name = name
        _type(entry.type, value_type)


def _text(value: str) -> bytes:
    return value.encode("utf-8", "surrogateescape")


def _attribute(proto: onnx.AttributeProto, name: str, attribute: Attribute) -> None:
    proto.name = name
    kind, value = attribute.kind, attribute.value
    if kind == "ref":
        proto.ref_attr_name = value
        if attribute.ref_kind is not None:
            proto.type = _KINDS[attribute.ref_kind]
        return
    proto.type = _KINDS[kind]
    if kind == "int":
        proto.i = value
    elif kind == "ints":
        proto.ints.extend(value)
    elif kind == "float":
        proto.f = value
    elif kind == "floats":
        proto.floats.extend(value)
    elif kind == "string":
        proto.s = _text(value)
    elif kind == "strings":
        proto.strings.extend(map(_text, value))
    else:
        _compound(proto, kind, value)


def _compound(proto: onnx.AttributeProto, kind: str, value) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    if kind == "tensor":
        _tensor(proto.t, "", value)
    elif kind == "graph":
        _graph(proto.g, value)
    elif kind == "type":
        _type(proto.tp, value)
    elif kind == "sparse":
        _sparse(proto.sparse_tensor, value, "")
    else:
        for item in value:
            if kind == "tensors":
                _tensor(proto.tensors.add(), "", item)
            elif kind == "graphs":
                _graph(proto.graphs.add(), item)
            elif kind == "types":
                _type(proto.type_protos.add(), item)
            else:
                _sparse(proto.sparse_tensors.add(), item, "")


def _type(proto: onnx.TypeProto, value_type: ValueType) -> None:
    match value_type:
        case TensorType(dtype, shape):
            _shaped(proto.tensor_type, dtype, shape)
        case SparseTensorType(dtype, shape):
            _shaped(proto.sparse_tensor_type, dtype, shape)
        case SequenceType(element):
            _type(proto.sequence_type.elem_type, element)
        case OptionalType(element):
            _type(proto.optional_type.elem_type, element)
        case MapType(key, value):
            proto.map_type.key_type = DTYPES[key].code
            _type(proto.map_type.value_type, value)


def _shaped(proto, dtype: str, shape: tuple[Dim, ...] | None) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    proto.elem_type = DTYPES[dtype].code
    if shape is None:
        return
    dims = proto.shape.dim
    if not shape:
        proto.shape.SetInParent()
    for size in shape:
        entry = dims.add()
        if isinstance(size, int):
            entry.dim_value = size
        elif size is not None:
            entry.dim_param = size


def _tensor(proto: onnx.TensorProto, name: str, value: Tensor) -> None:
    if name:
        proto.name = name
    proto.data_type = DTYPES[value.dtype].code
    proto.dims.extend(value.array.shape)
    if value.dtype == "string":
        proto.string_data.extend(_text(item) if isinstance(item, str) else item for item in value.array.ravel())
    elif value.dtype in _PACKED:
        proto.raw_data = pack(value.array, DTYPES[value.dtype].bits)
    else:
        proto.raw_data = value.array.tobytes()


def _sparse(proto: onnx.SparseTensorProto, sparse: SparseTensor, name: str) -> None:
    _tensor(proto.values, name, sparse.values)
    _tensor(proto.indices, "", sparse.indices)
    proto.dims.extend(sparse.shape)
