"""The check, the types of values, and equality."""

import re

import pytest
from graph_strategies import valid_models
from hypothesis import given, settings

from miscompile.base.errors import ModelError
from miscompile.graph.check import agree, check
from miscompile.graph.emit import emit
from miscompile.graph.equality import difference
from miscompile.graph.model import (
    Attribute,
    MapType,
    Model,
    OptionalType,
    SequenceType,
    SparseTensorType,
    TensorType,
)
from miscompile.graph.text.parser import parse_model
from miscompile.graph.typing import value_types


@given(valid_models())
@settings(max_examples=50)
def test_good_models_pass(model: Model) -> None:
    check(model)
    check(emit(model))


HEAD = "opset 21 graph g(%x: float32[2,3], %c: bool[]) -> "

FAULTS = {
    "IR version 99 is not known": f"ir 99 {HEAD} (%y: float32[2,3]) {{ %y = Relu(%x) }}",
    "operator set 999 of the standard domain is not known": (
        "opset 999 graph g(%x: int8[]) -> (%y: int8[]) { %y = Relu(%x) }"
    ),
    "operator set 77 of ai.onnx.ml is not known": (
        "opset 21 opset ai.onnx.ml 77 graph g(%x: int8[]) -> (%x: int8[]) {}"
    ),
    "two inputs of the graph are named 'x'": "opset 21 graph g(%x: int8[], %x: int8[]) -> (%y) { %y = Neg(%x) }",
    "two outputs of the graph are named 'y'": f"{HEAD} (%y, %y) {{ %y = Neg(%x) }}",
    "two nodes of the graph are named 'n'": f"{HEAD} (%y) {{ %a = Neg(%x) @n %y = Neg(%a) @n }}",
    "two values of the graph are named 'y'": f"{HEAD} (%y) {{ %y = Neg(%x) %y = Abs(%x) }}",
    "two values of the graph are named 'x'": f"{HEAD} (%x) {{ %x = Neg(%x) }}",
    "Neg in the graph uses 'a' before it is made": f"{HEAD} (%y) {{ %y = Neg(%a) %a = Neg(%x) }}",
    "Neg 'n' in the graph uses 'a', which nothing defines": f"{HEAD} (%y) {{ %y = Neg(%a) @n }}",
    "output 'y' of the graph is not defined": f"{HEAD} (%y) {{ %z = Neg(%x) }}",
    "'x' is defined in a body of If and again outside it": (
        f"{HEAD} (%y) {{ %y = If(%c) {{then_branch=graph t() -> (%x) {{ %x = Constant() {{value_int=1}} }},"
        " else_branch=graph e() -> (%b) { %b = Constant() {value_int=1} }} }"
    ),
    "onnx rejects the model: .*Nonsense": f"{HEAD} (%y: float32[2,3]) {{ %y = Nonsense(%x) }}",
    "onnx rejects the model: .*axis": f"{HEAD} (%y: float32[2,3]) {{ %y = Concat(%x) }}",
    "onnx rejects the model: .*Incompatible dimensions": f"{HEAD} (%y: float32[2,3]) {{ %y = MatMul(%x, %x) }}",
    "onnx rejects the model: .*4": f"{HEAD} (%y: float32[2,4]) {{ %y = Neg(%x) }}",
    "onnx rejects the model: .*4.*": (
        f"{HEAD} (%y: float32[2,3]) {{ %a: float32[2,4] = Neg(%x) %y = Neg(%x) }}"
    ),
    r"'y' is declared as .*\(3, 2\).* but inference finds .*\(2, 3\)": (
        f"{HEAD} (%y: float32[3,2]) {{ %s = Shape(%x) %y = Reshape(%x, %s) }}"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("message", "text"), FAULTS.items(), ids=list(FAULTS))
def test_every_fault_is_named_in_one_line(message: str, text: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        check(parse_model(text))
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_model() -> None:
    with pytest.raises(ModelError, match="no ONNX model"):
        check(b"no")


def test_foreign_operators_are_let_be() -> None:
    check(parse_model(f"opset com.acme 1 {HEAD} (%y: float32[7]) {{ %y = com.acme::Magic(%x) }}"))


def test_types_of_all_values() -> None:
    model = parse_model(
        f"{HEAD} (%y: float32[?,?], %m) {{ init %w: float32[3,4] = fill 1.0 init %k: int64[2] = [4, -1]"
        " %a = MatMul(%x, %w) %y = Reshape(%a, %k) %s = SequenceConstruct(%a, %a)"
        " %f = com.acme::Magic(%x) %m = com.acme::More(%f) type %f: int8[9] }"
    ).graph
    types = value_types(Model(model, {"": 21, "com.acme": 1}))
    assert types == {
        "x": TensorType("float32", (2, 3)),
        "c": TensorType("bool", ()),
        "w": TensorType("float32", (3, 4)),
        "k": TensorType("int64", (2,)),
        "a": TensorType("float32", (2, 4)),
        "y": TensorType("float32", (4, 2)),
        "s": SequenceType(TensorType("float32", (2, 4))),
        "f": TensorType("int8", (9,)),
    }


def test_broken_nodes_are_errors_unless_one_asks_for_less() -> None:
    model = parse_model(f"{HEAD} (%y) {{ %y = MatMul(%x, %x) %z = Neg(%x) }}")
    with pytest.raises(ModelError, match=r"types do not fit: .*Incompatible dimensions"):
        value_types(model)
    assert value_types(model, strict=False)["z"] == TensorType("float32", (2, 3))


def test_types_that_agree() -> None:
    some, other = TensorType("float32", (2, "N")), TensorType("float32", (2, 3))
    assert agree(some, other)
    assert agree(TensorType("float32", None), other)
    assert agree(SequenceType(some), SequenceType(other))
    assert agree(OptionalType(some), OptionalType(other))
    assert agree(MapType("int64", some), MapType("int64", other))
    assert not agree(TensorType("float32", (4, 3)), other)
    assert not agree(TensorType("float32", (2, 3, 1)), other)
    assert not agree(TensorType("float64", (2, 3)), other)
    assert not agree(SequenceType(some), OptionalType(some))
    assert not agree(SparseTensorType("float32", (2, 3)), other)
    assert not agree(MapType("string", some), MapType("int64", other))


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("[1.0, -0.0]", "[1.0, 0.0]", r"model.graph.initializers\['w'\]: float32\[2\] \[1.0, -0.0\] against"),
        ("alpha=0.5", "alpha=0.25", r"model.graph.nodes\[0\].attributes\['alpha'\].value: 0.5 against 0.25"),
        ("%y = Leaky", "%y: int8[] = Leaky", r"model.graph.types: only the second has 'y'"),
        ("opset 21", "opset 20", r"model.opsets\[''\]: 21 against 20"),
        ("LeakyRelu(%x)", "LeakyRelu(%x, %x)", r"model.graph.nodes\[0\].inputs: 1 items against 2"),
        ("alpha=0.5", "alpha=1", r"attributes\['alpha'\].kind: 'float' against 'int'"),
        ("%x: float32[2]", "%x: sparse(float32[2])", r"graph.inputs\[0\].type: TensorType.* against SparseTensorType"),
    ],
)
def test_the_first_difference_is_named(old: str, new: str, where: str) -> None:
    text = "opset 21 graph g(%x: float32[2]) -> (%y) { init %w: float32[2] = [1.0, -0.0]"
    text += " %y = LeakyRelu(%x) {alpha=0.5} }"
    assert text.count(old) == 1
    found = difference(parse_model(text), parse_model(text.replace(old, new)))
    assert found is not None
    assert re.search(where, found)


def test_floats_are_compared_as_onnx_holds_them() -> None:
    assert difference(Attribute("float", 0.1), Attribute("float", 0.10000000149011612)) is None
    assert difference(Attribute("float", float("nan")), Attribute("float", float("nan"))) is None
    assert difference(Attribute("float", 0.0), Attribute("float", -0.0)) is not None
    assert difference(Attribute("float", 1e300), Attribute("float", float("inf"))) is None
