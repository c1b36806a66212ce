"""Printer of models in the text form. This is the grammar; white space only separates, `#` begins a comment.

    ir 10                                              header
    opset 21                                           version of the standard operator set
    opset com.microsoft 1

    graph main(%x: float32[N,3,?], %y: float32[*]) -> (%out: float32[2,3]) {
      init %w: float32[3] = [1.0, -0.5, nan]           or: fill 0.0, or: base64 "..." (the bytes in memory)
      init %s = sparse [4,4] float32[1] [2.0] at int64[1] [5]
      type %w: float32[3]                              type of a value without a producer
      %h: float32[2,3], _ = Foo(%x, _, %w) {axis=1, mode="linear", scale=0.5, pads=[0, 1]} @node_name
      () = my.domain::Bar:overload(%h)
      %out = If(%c) {
        then_branch=graph then() -> (%t) { ... },
        else_branch=graph else() -> (%e) { ... }
      }
    }

    function my.domain::Bar:overload<alpha, beta=1.0>(%a) -> (%b) {
      opset 21
      %b = LeakyRelu(%a) {alpha=@alpha:float}
    }

A `_` is an omitted value, `?` an unknown size, `[*]` an unknown rank, `[]` a scalar. Further types: `seq(T)`,
`optional(T)`, `map(int64, T)`, `sparse(float32[2,2])`. Further attribute values: `tensor float32[1] [2.0]`,
`sparse ...`, `graph ...`, `type T`, lists of those, `ints[]` (a kind may precede any list, and must precede an empty
one), and `float 0x7fc00001` (the bits of a float32). Names that are not plain words are in double quotes.
"""

import base64
from collections.abc import Iterable, Mapping

import numpy as np

from miscompile.core.case import Dim
from miscompile.core.tensor import Tensor, tensor, text_of
from miscompile.graph.equality import float_bits
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
    ValueInfo,
    ValueType,
)
from miscompile.graph.text.elements import format_elements, words
from miscompile.graph.text.lexer import mark, quote, value_name, word

_LONG = 64
_MANY = 8


def print_model(model: Model) -> str:
    """Return the text of `model`, which `parse_model` turns into an equal model."""
    header = [f"ir {model.ir_version}", *_opsets(model.opsets)]
    parts = ["\n".join(header), print_graph(model.graph), *map(_function, model.functions)]
    return "\n\n".join(parts) + "\n"


def print_graph(graph: Graph, indent: str = "") -> str:
    """Return the text of one graph; lines after the first begin with `indent`."""
    head = f"graph {word(graph.name)}({_infos(graph.inputs)}) -> ({_infos(graph.outputs)}) {{"
    inner = f"{indent}  "
    made = {name for node in graph.nodes for name in node.outputs}
    lines = [f"init {value_name(name)}: {_initializer(value)}" for name, value in graph.initializers.items()]
    lines += [f"init {value_name(name)} = {_sparse(value)}" for name, value in graph.sparse_initializers.items()]
    lines += _loose_types(graph.types, made)
    lines += [print_node(node, graph.types, inner) for node in graph.nodes]
    return "\n".join([head, *(inner + line for line in lines), f"{indent}}}"])


def print_node(node: Node, types: Mapping[str, ValueType] | None = None, indent: str = "") -> str:
    """Return the text of one node, one line unless it has bodies; `types` annotates its outputs."""
    known = types or {}
    outputs = ", ".join(_made(name, known.get(name)) for name in node.outputs) or "()"
    inputs = ", ".join(value_name(name) if name else "_" for name in node.inputs)
    text = f"{outputs} = {_callee(node.domain, node.op, node.overload)}({inputs})"
    if node.attributes:
        text += f" {_attributes(node.attributes, indent)}"
    return f"{text} {mark(node.name)}" if node.name else text


def print_type(value_type: ValueType) -> str:
    """Return the text of a value type, such as `float32[2,N,?]`."""
    match value_type:
        case TensorType(dtype, shape):
            return f"{dtype}{_shape(shape)}"
        case SparseTensorType(dtype, shape):
            return f"sparse({dtype}{_shape(shape)})"
        case SequenceType(element):
            return f"seq({print_type(element)})"
        case OptionalType(element):
            return f"optional({print_type(element)})"
        case MapType(key, value):
            return f"map({key}, {print_type(value)})"


def _function(function: Function) -> str:
    parameters = [word(name) for name in function.attributes]
    parameters += [f"{word(name)}={_attribute(default, '')}" for name, default in function.defaults.items()]
    head = f"function {_callee(function.domain, function.name, function.overload)}"
    head += f"<{', '.join(parameters)}>" if parameters else ""
    head += f"({', '.join(map(value_name, function.inputs))}) -> ({', '.join(map(value_name, function.outputs))}) {{"
    made = {name for node in function.nodes for name in node.outputs}
    lines = [*_opsets(function.opsets), *_loose_types(function.types, made)]
    lines += [print_node(node, function.types, "  ") for node in function.nodes]
    return "\n".join([head, *(f"  {line}" for line in lines), "}"])


def _opsets(opsets: Mapping[str, int]) -> list[str]:
    return [f"opset {word(domain)} {version}" if domain else f"opset {version}" for domain, version in opsets.items()]


def _callee(domain: str, name: str, overload: str) -> str:
    prefix = f"{word(domain)}::" if domain else ""
    return prefix + word(name) + (f":{word(overload)}" if overload else "")


def _infos(infos: Iterable[ValueInfo]) -> str:
    return ", ".join(_typed(info.name, info.type) for info in infos)


def _typed(name: str, value_type: ValueType | None) -> str:
    return value_name(name) if value_type is None else f"{value_name(name)}: {print_type(value_type)}"


def _made(name: str, value_type: ValueType | None) -> str:
    return _typed(name, value_type) if name else "_"


def _loose_types(types: Mapping[str, ValueType], made: set[str]) -> list[str]:
    return [f"type {_typed(name, known)}" for name, known in types.items() if not name or name not in made]


def _shape(shape: tuple[Dim, ...] | None) -> str:
    return "[*]" if shape is None else f"[{','.join(map(_dim, shape))}]"


def _dim(size: Dim) -> str:
    if size is None:
        return "?"
    return str(size) if isinstance(size, int) else word(size)


def _initializer(value: Tensor) -> str:
    return f"{value.dtype}{_shape(value.shape)} = {_elements(value)}"


def _tensor(value: Tensor) -> str:
    return f"{value.dtype}{_shape(value.shape)} {_elements(value)}"


def _sparse(value: SparseTensor) -> str:
    return f"sparse {_shape(value.shape)} {_tensor(value.values)} at {_tensor(value.indices)}"


def _elements(value: Tensor) -> str:
    array = value.array
    if value.dtype == "string":
        return f"[{', '.join(quote(text_of(item)) for item in array.reshape(-1))}]"
    if array.size > _MANY and (all_words := words(array)).size == array.size and (all_words == all_words[0]).all():
        return f"fill {format_elements(Tensor(value.dtype, array.reshape(-1)[:1]))[0]}"
    if array.size > _LONG:
        return f"base64 {quote(base64.b64encode(array.tobytes()).decode())}"
    texts = format_elements(value)
    if array.dtype.kind == "c":
        texts = [f"({real}, {imaginary})" for real, imaginary in zip(texts[::2], texts[1::2], strict=True)]
    return f"[{', '.join(texts)}]"


def _attributes(attributes: Mapping[str, Attribute], indent: str) -> str:
    inner = f"{indent}  "
    items = [f"{word(name)}={_attribute(attribute, inner)}" for name, attribute in attributes.items()]
    if any(attribute.kind in ("graph", "graphs") for attribute in attributes.values()):
        return "{\n" + ",\n".join(inner + item for item in items) + f"\n{indent}}}"
    return f"{{{', '.join(items)}}}"


def _attribute(attribute: Attribute, indent: str) -> str:
    kind, value = attribute.kind, attribute.value
    if kind == "ref":
        return f"{mark(value)}:{attribute.ref_kind}" if attribute.ref_kind else mark(value)
    if kind in ("int", "float", "string", "tensor", "sparse", "graph", "type"):
        text = _single(kind, value, indent)
        return f"float {text}" if kind == "float" and text.startswith("0x") else text
    texts = [_single(kind.removesuffix("s"), item, indent) for item in value]
    bare = texts and (kind != "floats" or not any(text.startswith("0x") for text in texts))
    return f"{'' if bare else kind}[{', '.join(texts)}]"


def _single(kind: str, value: object, indent: str) -> str:
    match value:
        case Tensor():
            return f"tensor {_tensor(value)}"
        case SparseTensor():
            return _sparse(value)
        case Graph():
            return print_graph(value, indent)
        case str():
            return quote(value)
        case float() | int() if kind == "float":
            return format_elements(tensor(np.array([float_bits(float(value))], np.uint32).view(np.float32)))[0]
        case int():
            return str(int(value))
        case TensorType() | SparseTensorType() | SequenceType() | OptionalType() | MapType():
            return f"type {print_type(value)}"
        case _:
            raise TypeError(f"{value!r} is no value of an attribute of kind {kind}")
