"""Parser of models in the text form; the docstring of `printer` contains the grammar."""

from collections.abc import Mapping
from typing import cast, get_args

from miscompile.core.tensor import Tensor
from miscompile.graph.model import (
    NO_ATTRIBUTES,
    Attribute,
    AttributeKind,
    Function,
    Graph,
    Model,
    Node,
    SparseTensor,
    ValueInfo,
    ValueType,
)
from miscompile.graph.text.elements import parse_elements
from miscompile.graph.text.lexer import Cursor
from miscompile.graph.text.literals import parse_contents, parse_sparse, parse_tensor, parse_type, static_type

_PLURALS = ("ints", "floats", "strings", "tensors", "graphs", "types", "sparses")


def parse_model(text: str) -> Model:
    """Return the model that `text` denotes. Raises ModelError, with line and column, for invalid text."""
    cursor = Cursor(text)
    ir_version = 10
    if cursor.accept("ir"):
        ir_version = cursor.integer("the IR version")
    opsets = _opsets(cursor)
    graph = parse_graph(cursor)
    functions: list[Function] = []
    while cursor.at("function"):
        functions.append(_function(cursor))
    if cursor.token.kind != "end":
        raise cursor.error("expected a function or the end")
    return Model(graph, opsets, tuple(functions), ir_version)


def parse_graph(cursor: Cursor) -> Graph:
    """Parse a graph or subgraph at `cursor`. Raises ModelError."""
    cursor.expect("graph")
    name = cursor.name("the graph's name")
    inputs = cursor.items("(", ")", _info)
    cursor.expect("->")
    outputs = cursor.items("(", ")", _info)
    cursor.expect("{")
    body = _Body(cursor)
    while not cursor.accept("}"):
        if cursor.at("init"):
            body.initializer()
        else:
            body.statement()
    return Graph(name, inputs, outputs, tuple(body.nodes), body.initializers, body.sparse, body.types)


def _function(cursor: Cursor) -> Function:
    cursor.expect("function")
    domain, name, overload = _callee(cursor)
    required: list[str] = []
    defaults: dict[str, Attribute] = {}
    for key, default in cursor.items("<", ">", _parameter) if cursor.at("<") else ():
        if default is None:
            required.append(key)
        else:
            defaults[key] = default
    inputs = cursor.items("(", ")", Cursor.value)
    cursor.expect("->")
    outputs = cursor.items("(", ")", Cursor.value)
    cursor.expect("{")
    opsets = _opsets(cursor)
    body = _Body(cursor)
    while not cursor.accept("}"):
        body.statement()
    return Function(
        domain, name, inputs, outputs, tuple(body.nodes), opsets, tuple(required), defaults, overload, body.types
    )


class _Body:
    """Collects the statements of a graph or function."""

    def __init__(self, cursor: Cursor) -> None:
        self._cursor = cursor
        self.nodes: list[Node] = []
        self.initializers: dict[str, Tensor] = {}
        self.sparse: dict[str, SparseTensor] = {}
        self.types: dict[str, ValueType] = {}

    def initializer(self) -> None:
        cursor = self._cursor
        cursor.expect("init")
        token = cursor.token
        name = cursor.value()
        if name in self.initializers or name in self.sparse:
            raise cursor.error(f"there is already an initializer named {name!r}", token)
        if cursor.accept(":"):
            dtype, shape = static_type(cursor)
            cursor.expect("=")
            self.initializers[name] = parse_contents(cursor, dtype, shape)
        else:
            cursor.expect("=")
            self.sparse[name] = parse_sparse(cursor)

    def statement(self) -> None:
        cursor = self._cursor
        if cursor.accept("type"):
            name = cursor.value()
            cursor.expect(":")
            self.types[name] = parse_type(cursor)
        else:
            self.nodes.append(self._node())

    def _node(self) -> Node:
        cursor = self._cursor
        outputs: list[str] = []
        if cursor.accept("("):
            cursor.expect(")")
        else:
            outputs.append(self._output())
            while cursor.accept(","):
                outputs.append(self._output())
        cursor.expect("=")
        domain, op, overload = _callee(cursor)
        inputs = cursor.items("(", ")", Cursor.operand)
        attributes = _attributes(cursor) if cursor.at("{") else NO_ATTRIBUTES
        name = cursor.take().text if cursor.token.kind == "mark" else ""
        return Node(op, inputs, tuple(outputs), attributes, domain, name, overload)

    def _output(self) -> str:
        cursor = self._cursor
        name = cursor.operand()
        if name and cursor.accept(":"):
            self.types[name] = parse_type(cursor)
        return name


def _info(cursor: Cursor) -> ValueInfo:
    name = cursor.value()
    return ValueInfo(name, parse_type(cursor) if cursor.accept(":") else None)


def _opsets(cursor: Cursor) -> Mapping[str, int]:
    opsets: dict[str, int] = {}
    while cursor.accept("opset"):
        token = cursor.token
        domain = "" if token.kind == "number" else cursor.name("a domain or a version")
        if domain in opsets:
            raise cursor.error(f"operator set {domain!r} is imported twice", token)
        opsets[domain] = cursor.integer("a version")
    return opsets


def _callee(cursor: Cursor) -> tuple[str, str, str]:
    domain, name = "", cursor.name("an operator")
    if cursor.accept("::"):
        domain, name = name, cursor.name("an operator")
    return domain, name, cursor.name("an overload") if cursor.accept(":") else ""


def _parameter(cursor: Cursor) -> tuple[str, Attribute | None]:
    name = cursor.name("an attribute")
    return name, _attribute(cursor) if cursor.accept("=") else None


def _attributes(cursor: Cursor) -> Mapping[str, Attribute]:
    found: dict[str, Attribute] = {}

    def entry(cursor: Cursor) -> None:
        token = cursor.token
        name = cursor.name("an attribute")
        if name in found:
            raise cursor.error(f"attribute {name!r} is given twice", token)
        cursor.expect("=")
        found[name] = _attribute(cursor)

    cursor.items("{", "}", entry)
    return found


def _attribute(cursor: Cursor) -> Attribute:
    if cursor.token.kind == "mark":
        name = cursor.take().text
        return Attribute("ref", name, _kind(cursor) if cursor.accept(":") else None)
    if cursor.at(*_PLURALS):
        kind = cast(AttributeKind, cursor.take().text)
        single = kind.removesuffix("s")
        return Attribute(kind, tuple(value for _, value in cursor.items("[", "]", lambda c: _single(c, single))))
    if cursor.at("["):
        return _bare_list(cursor)
    kind, value = _single(cursor)
    return Attribute(kind, value)


def _kind(cursor: Cursor) -> AttributeKind:
    token = cursor.token
    name = cursor.name("a kind of attribute")
    if name not in get_args(AttributeKind):
        raise cursor.error(f"{name!r} is no kind of attribute", token)
    return cast(AttributeKind, name)


def _bare_list(cursor: Cursor) -> Attribute:
    start = cursor.token
    items = cursor.items("[", "]", _single)
    kinds = {kind for kind, _ in items}
    if kinds == {"int", "float"}:
        return Attribute("floats", tuple(float(cast(float, value)) for _, value in items))
    if len(kinds) != 1:
        raise cursor.error(
            "an empty list needs its kind, such as ints[]" if not kinds else "a list of mixed kinds", start
        )
    return Attribute(cast(AttributeKind, f"{kinds.pop()}s"), tuple(value for _, value in items))


def _single(cursor: Cursor, wanted: str = "") -> tuple[AttributeKind, object]:
    """Parse one attribute value that is not a list; `wanted` is its required kind, "" for any."""
    token = cursor.token
    kind, value = _number(cursor, wanted) if _numeric(cursor) else _compound(cursor)
    if wanted and kind != wanted:
        raise cursor.error(f"expected a value of kind {wanted}, not {kind}", token)
    return kind, value


def _numeric(cursor: Cursor) -> bool:
    return cursor.token.kind == "number" or cursor.at("float")


def _number(cursor: Cursor, wanted: str) -> tuple[AttributeKind, object]:
    as_float = cursor.accept("float") or wanted == "float"
    token = cursor.token
    text = cursor.expect_kind("number", "a number")
    if as_float or not (text.startswith(("0x", "-0x")) or text.removeprefix("-").isdigit()):
        if text.startswith("-0x"):
            raise cursor.error("the bits of a float have no sign", token)
        return "float", float(parse_elements("float32", [text])[0])
    return "int", cursor.as_integer(token, 16 if text.startswith(("0x", "-0x")) else 10)


def _compound(cursor: Cursor) -> tuple[AttributeKind, object]:
    if cursor.token.kind == "string":
        return "string", cursor.take().text
    if cursor.at("graph"):
        return "graph", parse_graph(cursor)
    if cursor.at("sparse"):
        return "sparse", parse_sparse(cursor)
    if cursor.accept("tensor"):
        return "tensor", parse_tensor(cursor)
    if cursor.accept("type"):
        return "type", parse_type(cursor)
    raise cursor.error("expected the value of an attribute")
