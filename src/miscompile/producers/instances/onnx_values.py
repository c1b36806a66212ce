"""Parameters of ONNX nodes as values of an instance: attributes, bodies, types, and values other than dense tensors.

An integer, a float and a text are themselves; their plural kinds are tuples; a tensor is `Held`. Everything else is
`Made`, named after what makes it in the `onnx` package:

    a body          onnx.helper.make_graph((nodes), name, (inputs), (outputs), initializer={name: tensor})
    its nodes       onnx.helper.make_node(operator, (inputs), (outputs), domain=..., attribute=...)
    its ports       onnx.helper.make_value_info(name, type or None)
    types           onnx.TypeProto.Tensor(dtype, shape or None), .SparseTensor, .Sequence, .Optional, .Map
    a sparse tensor onnx.SparseTensorProto(values, indices, shape)
    a sequence      onnx.SequenceProto(elements, element type)
    an optional     onnx.OptionalProto(type of what it may hold, and what it holds where it holds something)

Bodies are encoded as structure, not as bytes, so that their nodes can be read, compared and counted like others.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from types import NoneType
from typing import Any, cast

import numpy as np
import onnx
from onnx import defs

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import ModelError
from miscompile.core.tensor import Tensor
from miscompile.graph.decode import decode_tensor
from miscompile.graph.emit import tensor_proto
from miscompile.graph.model import (
    Attribute,
    AttributeKind,
    Graph,
    MapType,
    Node,
    OptionalType,
    SequenceType,
    SparseTensor,
    SparseTensorType,
    TensorType,
    ValueInfo,
    ValueType,
)
from miscompile.instances.values import Drawn, Held, Made, Name, Value, tensor_of

GRAPH = "onnx.helper.make_graph"
NODE = "onnx.helper.make_node"
PORT = "onnx.helper.make_value_info"
SPARSE = "onnx.SparseTensorProto"
SEQUENCE = "onnx.SequenceProto"
OPTIONAL = "onnx.OptionalProto"
_TYPE = "onnx.TypeProto."

_RESERVED = ("domain", "name")
_INTEGERS = 1 << 63
"""Upper bound (exclusive) of integers in attributes."""
_KINDS: dict[str, AttributeKind] = {
    "INT": "int", "FLOAT": "float", "STRING": "string", "TENSOR": "tensor", "GRAPH": "graph", "TYPE_PROTO": "type",
    "SPARSE_TENSOR": "sparse", "INTS": "ints", "FLOATS": "floats", "STRINGS": "strings", "TENSORS": "tensors",
    "GRAPHS": "graphs", "TYPE_PROTOS": "types", "SPARSE_TENSORS": "sparses",
}  # fmt: skip


@cache
def schema_of(op: str, version: int, domain: str) -> Any:  # noqa: ANN401 - an extension type
    """Return onnx's schema of an operator in an operator set, None for an operator that onnx does not define."""
    try:
        return defs.get_schema(op, version, domain)
    except defs.SchemaError:
        return None


@cache
def attribute_kinds(op: str, version: int, domain: str) -> Mapping[str, AttributeKind]:
    """Return the kinds of an operator's attributes by name; nothing for a foreign operator."""
    schema = schema_of(op, version, domain)
    return {name: _KINDS[one.type.name] for name, one in schema.attributes.items()} if schema else {}


def attribute_value(attribute: Attribute) -> Value:
    """Return an attribute as a parameter. Raises ModelError for one that refers to a function's attribute."""
    kind, value = attribute.kind, attribute.value
    if kind == "ref":
        raise ModelError("an attribute refers to that of a function, which a node of its own does not have")
    if kind in ("int", "float", "string"):
        return cast(Value, value)
    one = cast(AttributeKind, kind.removesuffix("s"))
    if one != kind:
        return tuple(attribute_value(Attribute(one, item)) for item in value)
    if kind == "tensor":
        return Held(value)
    if kind == "graph":
        return graph_value(value)
    if kind == "type":
        return type_value(value)
    return Made(SPARSE, (Held(value.values), Held(value.indices), value.shape))


def value_attribute(value: Value, kind: AttributeKind | None = None) -> Attribute:
    """Return the attribute that a parameter stands for; `kind` is the kind in the operator's schema, where there is
    one.

    Raises ModelError for a value that no attribute can hold.
    """
    if isinstance(value, tuple | list):
        if any(isinstance(item, tuple | list) for item in value):
            raise ModelError("an attribute of lists")
        one = cast(AttributeKind, kind.removesuffix("s")) if kind else None
        items = [value_attribute(item, one) for item in value]
        kinds = {item.kind for item in items}
        plural = cast(AttributeKind, f"{items[0].kind if items else one or 'int'}s")
        if len(kinds) > 1:
            raise ModelError(f"an attribute of several kinds ({', '.join(sorted(kinds))})")
        return Attribute(plural, tuple(item.value for item in items))
    found = _single(value)
    if kind == "float" and found.kind == "int":
        return Attribute("float", float(found.value))
    return found


def _single(value: Value) -> Attribute:
    match value:
        case bool() | int() if -_INTEGERS <= value < _INTEGERS:
            return Attribute("int", int(value))
        case float():
            return Attribute("float", float(np.float32(value)))
        case str():
            return Attribute("string", value)
        case Held() | Drawn():
            return Attribute("tensor", tensor_of(value))
        case Made(api) if api == GRAPH:
            return Attribute("graph", value_graph(value))
        case Made(api, (Held(values), Held(indices), tuple(shape))) if api == SPARSE and _all(int, shape):
            return Attribute("sparse", SparseTensor(values, indices, tuple(cast(int, size) for size in shape)))
        case Made(api) if api.startswith(_TYPE):
            return Attribute("type", value_type(value))
    raise ModelError(f"{value!r:.80} cannot be an attribute of an ONNX node")


def type_value(kind: ValueType) -> Made:
    """Return a type as a parameter."""
    match kind:
        case TensorType(dtype, shape):
            return Made(f"{_TYPE}Tensor", (Name("dtype", dtype), shape))
        case SparseTensorType(dtype, shape):
            return Made(f"{_TYPE}SparseTensor", (Name("dtype", dtype), shape))
        case SequenceType(element):
            return Made(f"{_TYPE}Sequence", (type_value(element),))
        case OptionalType(element):
            return Made(f"{_TYPE}Optional", (type_value(element),))
        case MapType(key, value):
            return Made(f"{_TYPE}Map", (Name("dtype", key), type_value(value)))


def value_type(value: Value) -> ValueType:
    """Return the type that a parameter stands for. Raises ModelError when it stands for none."""
    match value:
        case Made(api, (Name(_, dtype), (tuple() | None) as shape)) if (
            api in (f"{_TYPE}Tensor", f"{_TYPE}SparseTensor")
            and dtype in DTYPES
            and _all((int, str, NoneType), shape or ())
        ):
            make = TensorType if api.endswith(".Tensor") else SparseTensorType
            return make(dtype, cast(Any, shape))
        case Made(api, (element,)) if api in (f"{_TYPE}Sequence", f"{_TYPE}Optional"):
            wrap = SequenceType if api.endswith("Sequence") else OptionalType
            return wrap(value_type(element))
        case Made(api, (Name(_, key), element)) if api == f"{_TYPE}Map" and key in DTYPES:
            return MapType(key, value_type(element))
    raise ModelError(f"{value!r:.80} is no type")


def _all(kind: type | tuple[type, ...], values: Iterable[Value]) -> bool:
    """Tell whether all are of a type; instances can come from files that are damaged."""
    return all(isinstance(value, kind) for value in values)


def graph_value(graph: Graph) -> Made:
    """Return the body of a node as a parameter. Raises ModelError for one with sparse initialisers."""
    if graph.sparse_initializers:
        raise ModelError("a body with sparse initialisers")
    kwargs: dict[str, Value] = {}
    if graph.initializers:
        kwargs["initializer"] = {name: Held(value) for name, value in graph.initializers.items()}
    if graph.types:
        kwargs["value_info"] = tuple(_port(ValueInfo(name, kind)) for name, kind in graph.types.items())
    ports = (tuple(map(_port, graph.inputs)), tuple(map(_port, graph.outputs)))
    return Made(GRAPH, (tuple(map(_node, graph.nodes)), graph.name, *ports), kwargs)


def _port(info: ValueInfo) -> Made:
    return Made(PORT, (info.name, None if info.type is None else type_value(info.type)))


def _node(node: Node) -> Made:
    given = {name: attribute_value(one) for name, one in node.attributes.items()}
    if node.overload or any(name in given for name in _RESERVED):
        raise ModelError(f"{node.op} in a body has an overload, or an attribute that is called as its own fields are")
    named = {"domain": node.domain, "name": node.name}
    return Made(NODE, (node.op, node.inputs, node.outputs), {**given, **{k: v for k, v in named.items() if v}})


def value_graph(value: Value, version: int = 0) -> Graph:
    """Return the body that a parameter stands for. Raises ModelError when it stands for none.

    `version` is the operator set in which the kinds of empty attributes are looked up, 0 for the newest.
    """
    match value:
        case Made(api, (tuple(nodes), str(name), tuple(inputs), tuple(outputs)), kwargs) if api == GRAPH:
            held = _initializers(kwargs.get("initializer", {}))
            infos = _infos(kwargs.get("value_info", ()))
            return Graph(
                name,
                _infos(inputs),
                _infos(outputs),
                tuple(_made_node(item, version) for item in nodes),
                held,
                types={info.name: info.type for info in infos if info.type is not None},
            )
    raise ModelError(f"{value!r:.80} is no body of a node")


def _initializers(value: Value) -> dict[str, Tensor]:
    if not isinstance(value, dict) or not _all(str, value) or not _all(Held, value.values()):
        raise ModelError(f"{value!r:.80} are no initialisers of a body")
    return {str(name): held.tensor for name, held in value.items() if isinstance(held, Held)}


def _infos(values: Value) -> tuple[ValueInfo, ...]:
    if not isinstance(values, tuple):
        raise ModelError(f"{values!r:.80} are no ports of a body")
    return tuple(map(_info, values))


def _info(value: Value) -> ValueInfo:
    match value:
        case Made(api, (str(name), kind)) if api == PORT:
            return ValueInfo(name, None if kind is None else value_type(kind))
    raise ModelError(f"{value!r:.80} is no port of a body")


def _made_node(value: Value, version: int) -> Node:
    match value:
        case Made(api, (str(op), tuple(inputs), tuple(outputs)), kwargs) if api == NODE and _all(
            str, (*inputs, *outputs)
        ):
            domain, name = str(kwargs.get("domain", "")), str(kwargs.get("name", ""))
            given = {key: item for key, item in kwargs.items() if key not in _RESERVED}
            attributes = attributes_of(op, domain, version or defs.onnx_opset_version(), given)
            return Node(op, cast(Any, inputs), cast(Any, outputs), attributes, domain, name)
    raise ModelError(f"{value!r:.80} is no node of a body")


def attributes_of(op: str, domain: str, version: int, given: Mapping[str, Value]) -> dict[str, Attribute]:
    """Return the attributes of a node of its own or of one in a body, of the kinds that its schema says."""
    kinds = attribute_kinds(op, version, domain)
    return {name: value_attribute(value, kinds.get(name)) for name, value in given.items()}


def array_value(value: Any, kind: ValueType | None) -> Value:  # noqa: ANN401 - what onnx's evaluator works with
    """Return a value of the reference evaluator as a parameter; `kind` is its type in the model.

    Raises ModelError for sparse tensors and maps, and for an empty sequence of unknown type.
    """
    if isinstance(kind, OptionalType):
        if value is None:
            return Made(OPTIONAL, (type_value(kind.element),))
        held = array_value(value, kind.element)
        inner = operand_type(held)
        assert inner is not None
        return Made(OPTIONAL, (type_value(inner), held))
    if isinstance(value, np.ndarray | np.generic):
        return Held(from_array(value))
    if isinstance(value, list) and all(isinstance(item, np.ndarray | np.generic) for item in value):
        element = kind.element if isinstance(kind, SequenceType) else None
        items = tuple(Held(from_array(item)) for item in value)
        if not isinstance(element, TensorType):
            if not items:
                raise ModelError("an empty sequence whose type nobody knows")
            element = TensorType(items[0].tensor.dtype, None)
        return Made(SEQUENCE, (items, type_value(TensorType(element.dtype, None))))
    raise ModelError(f"a value of type {type(value).__name__}, which is neither tensor, sequence nor optional")


def operand_type(value: Value) -> ValueType | None:
    """Return the type of an operand, None for one that is left out. Raises ModelError for any other value."""
    match value:
        case None:
            return None
        case Held() | Drawn():
            dtype, shape = (value.tensor.dtype, value.tensor.shape) if isinstance(value, Held) else _drawn(value)
            return TensorType(dtype, shape)
        case Made(api, (tuple(), kind)) if api == SEQUENCE:
            return SequenceType(value_type(kind))
        case Made(api, args) if api == OPTIONAL:
            return OptionalType(value_type(args[0]))
    raise ModelError(f"{value!r:.80} is no input of an ONNX node")


def _drawn(value: Drawn) -> tuple[str, tuple[int, ...]]:
    return value.dtype, value.shape


def from_array(array: object) -> Tensor:
    """Return an array of the evaluator, whose type may be one of ml_dtypes, as a `Tensor`.

    Raises ModelError for other objects.
    """
    if not isinstance(array, np.ndarray | np.generic):
        raise ModelError(f"a {type(array).__name__} where a tensor should be")
    array = np.asarray(array)
    if array.dtype.kind in "OUS":
        return Tensor("string", array.astype(object))
    return decode_tensor(onnx.numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape)))


def to_array(value: Tensor) -> Any:  # noqa: ANN401 - an array of any type
    """Return a `Tensor` as an array for the evaluator."""
    return onnx.numpy_helper.to_array(tensor_proto(value))
