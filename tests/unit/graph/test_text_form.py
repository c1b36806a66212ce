"""The text form: what it looks like, that it parses back, and what its errors say."""

import re

import numpy as np
import pytest
from graph_strategies import any_models, tensors
from hypothesis import given, settings
from hypothesis import strategies as st

from miscompile.base.errors import ModelError
from miscompile.core.tensor import Tensor
from miscompile.graph.equality import difference
from miscompile.graph.model import Attribute, Graph, MapType, Model, Node, SequenceType, TensorType, ValueInfo
from miscompile.graph.text.elements import format_elements
from miscompile.graph.text.parser import parse_model
from miscompile.graph.text.printer import print_model, print_node, print_type


@given(any_models())
@settings(max_examples=120)
def test_parsing_undoes_printing(model: Model) -> None:
    text = print_model(model)
    back = parse_model(text)
    assert difference(model, back) is None
    assert sorted(print_model(back).splitlines()) == sorted(text.splitlines())


@given(tensors())
@settings(max_examples=150)
def test_every_bit_of_a_tensor_survives(value: Tensor) -> None:
    model = Model(Graph("g", (), (), (), {"w": value}), {"": 21})
    assert parse_model(print_model(model)).graph.initializers["w"].same(value)


def test_a_node_is_one_readable_line() -> None:
    node = Node(
        "Conv",
        ("x", "w", "", "/b/0"),
        ("y", ""),
        {"kernel_shape": Attribute("ints", (3, 3)), "group": Attribute("int", 1), "e": Attribute("float", 0.1)},
        "my.domain",
        "conv_1",
    )
    assert print_node(node, {"y": TensorType("float32", (2, "N", None))}) == (
        "%y: float32[2,N,?], _ = my.domain::Conv(%x, %w, _, %/b/0) {kernel_shape=[3, 3], group=1, e=0.1} @conv_1"
    )
    assert print_type(TensorType("int8", None)) == "int8[*]"


@pytest.mark.parametrize(
    ("dtype", "words", "texts"),
    [
        ("float32", np.array([0x3DCCCCCD, 0x7FC00000, 0x7FC00001, 0x80000000, 0xFF800000], np.uint32),
         ["0.1", "nan", "0x7fc00001", "-0.0", "-inf"]),
        ("bfloat16", np.array([0x3FC0, 0x7F80], np.uint16), ["1.5", "inf"]),
        ("float8e4m3fn", np.array([0x38, 0xB8], np.uint8), ["1.0", "-1.0"]),
        ("int4", np.array([15, 7], np.uint8), ["-1", "7"]),
        ("bool", np.array([1, 0, 2], np.uint8), ["true", "false", "0x02"]),
        ("float4e2m1", np.array([1, 15], np.uint8), ["0.5", "-6.0"]),
    ],
)  # fmt: skip
def test_elements_are_decimals_where_they_can_be(dtype: str, words: np.ndarray, texts: list[str]) -> None:
    value = Tensor(dtype, words.view(np.bool_ if dtype == "bool" else words.dtype))
    if dtype == "float32":
        value = Tensor(dtype, words.view(np.float32))
    assert format_elements(value) == texts


def _text(value: Tensor) -> str:
    return print_model(Model(Graph("g", (), (), (), {"w": value}), {"": 21}))


def test_large_tensors_are_short() -> None:
    assert "init %w: float32[10,20] = fill 0.0\n" in _text(Tensor("float32", np.zeros((10, 20), np.float32)))
    assert 'init %w: uint8[100] = base64 "AAEC' in _text(Tensor("uint8", np.arange(100, dtype=np.uint8)))
    assert "init %w: complex64[1] = [(1.0, 2.0)]" in _text(Tensor("complex64", np.array([1 + 2j], np.complex64)))


def _parse(body: str) -> Model:
    return parse_model(f"opset 21\ngraph g(%x: float32[2]) -> (%y) {{\n{body}\n}}")


def test_blanks_and_comments_only_separate() -> None:
    model = _parse("# a comment\n %y=Relu ( %x ) # another\n\t{ }")
    assert model.graph.nodes == (Node("Relu", ("x",), ("y",)),)
    assert model.graph.inputs == (ValueInfo("x", TensorType("float32", (2,))),)


@pytest.mark.parametrize(
    ("value", "attribute"),
    [
        ("1", Attribute("int", 1)),
        ("1.0", Attribute("float", 1.0)),
        ("-inf", Attribute("float", float("-inf"))),
        ("floats[]", Attribute("floats", ())),
        ('["a", "b\\n"]', Attribute("strings", ("a", "b\n"))),
        ("@alpha:float", Attribute("ref", "alpha", "float")),
        (
            "[type seq(int8[]), type map(string, int8[*])]",
            Attribute("types", (SequenceType(TensorType("int8", ())), MapType("string", TensorType("int8", None)))),
        ),
    ],
)
def test_attribute_values_in_their_usual_form(value: str, attribute: Attribute) -> None:
    assert _parse(f"%y = Foo(%x) {{a={value}}}").graph.nodes[0].attributes["a"] == attribute
    assert print_node(Node("Foo", ("x",), ("y",), {"a": attribute})) == f"%y = Foo(%x) {{a={value}}}"


@pytest.mark.parametrize(
    ("value", "attribute"),
    [
        ("float 0x3f800000", Attribute("float", 1.0)),
        ("float 2", Attribute("float", 2.0)),
        ("[1, 2.5]", Attribute("floats", (1.0, 2.5))),
        ("floats[1, 2]", Attribute("floats", (1.0, 2.0))),
        ("ints[0x10]", Attribute("ints", (16,))),
    ],
)
def test_attribute_values_in_other_forms(value: str, attribute: Attribute) -> None:
    assert _parse(f"%y = Foo(%x) {{a={value}}}").graph.nodes[0].attributes["a"] == attribute


ERRORS = {
    "line 3, column 12: expected ',' but found '}'": "%y = Foo(%x}",
    "line 3, column 14: expected a value such as %x, or '_' but found ')'": "%y = Foo(%x, )",
    "line 3, column 10: 'floot32' is no element type": "init %w: floot32[2] = [1.0]",
    "line 3, column 23: float32[2] has 2 elements, but 1 are given": "init %w: float32[2] = [1.0]",
    "line 3, column 21: '300' is no element of uint8": "init %w: uint8[] = [300]",
    "line 3, column 23: expected an element of float32 but found 'x'": 'init %w: float32[] = ["x"]',
    "line 4, column 6: there is already an initializer named 'w'": "init %w: int8[] = [1]\ninit %w: int8[] = [1]",
    "line 3, column 20: attribute 'a' is given twice": "%y = Foo(%x) {a=1, a=2}",
    "line 3, column 17: an empty list needs its kind": "%y = Foo(%x) {a=[]}",
    "line 3, column 17: a list of mixed kinds": '%y = Foo(%x) {a=[1, "b"]}',
    "line 3, column 6: cannot read '~'": "%y = ~",
    "line 3, column 30: this is not base64": 'init %w: float32[2] = base64 "?"',
    "line 3, column 3: expected a function or the end": "} %z",
    "line 3, column 19: 'xyz' is no kind of attribute": "%y = F(%x) {a=@a :xyz}",
    "line 3, column 21: the bits of a float have no sign": "%y = F(%x) {a=float -0x1}",
    "line 3, column 17: 9223372036854775808 does not fit in 64 bits": "%y = Foo(%x) {a=9223372036854775808}",
    "line 3, column 17: expected the value of an attribute": "%y = Foo(%x) {a=}",
    "line 3, column 15: a size cannot be negative": "init %w: int8[-1] = []",
}


@pytest.mark.parametrize(("message", "body"), ERRORS.items(), ids=list(ERRORS))
def test_errors_name_line_and_column(message: str, body: str) -> None:
    with pytest.raises(ModelError) as caught:
        _parse(body)
    assert str(caught.value).startswith("graph text, ")
    assert "\n" not in str(caught.value)
    assert message in str(caught.value)


def test_an_operator_set_is_imported_once() -> None:
    with pytest.raises(ModelError, match="line 2, column 7: operator set '' is imported twice"):
        parse_model("opset 1\nopset 2\ngraph g() -> () {}")


@given(st.data())
@settings(max_examples=200)
def test_damaged_text_is_read_or_refused_with_a_place(data: st.DataObject) -> None:
    text = 'opset 21\ngraph g(%x: float32[2,N]) -> (%"y") {\n init %w: int4[2] = [1, -1]\n'
    text += " %y = Foo(%x, _) {a=[0.5, nan], b=tensor bool[] [true], c=@d:int} @n\n}\n"
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, start + 4))
    damaged = text[:start] + data.draw(st.text('%@"{}[]()<>,:=?*_0x-1.einf~\n', max_size=3)) + text[end:]
    fault = ""
    try:
        model = parse_model(damaged)
        assert difference(model, parse_model(print_model(model))) is None
    except ModelError as error:
        fault = str(error)
    assert not fault or re.fullmatch(r"graph text, line \d+, column \d+: .+", fault)
