"""Inlining of model-local functions."""

import pytest

from miscompile.base.errors import ModelError
from miscompile.graph.check import check
from miscompile.graph.fingerprint import fingerprint
from miscompile.graph.inline import inline
from miscompile.graph.model import Model
from miscompile.graph.prune import prune
from miscompile.graph.text.parser import parse_model

HEAD = "ir 10 opset 18 opset l 1 graph g(%x: float32[2], %c: bool[]) -> (%y: float32[2]) {"


def _inlined(body: str, functions: str = "") -> Model:
    model = parse_model(f"{HEAD} {body} }} {functions}")
    check(model)
    result = inline(model)
    assert result.functions == ()
    check(result)
    return result


def _same(model: Model, body: str) -> bool:
    return fingerprint(prune(model)) == fingerprint(parse_model(f"{HEAD} {body} }}"))


NESTED = """
function l::outer<alpha=0.25>(%a) -> (%b) {
  opset 18 opset l 1
  %u = l::inner(%a) {a=@alpha:float}
  %b = LeakyRelu(%u) {alpha=@alpha:float}
}
function l::inner<a>(%p) -> (%q) { opset 18 %t = LeakyRelu(%p) {alpha=@a:float} %q = Neg(%t) }
"""


def test_attributes_go_through_nested_calls() -> None:
    model = _inlined("%y = l::outer(%x) {alpha=0.5}", NESTED)
    assert _same(model, "%t = LeakyRelu(%x) {alpha=0.5} %u = Neg(%t) %y = LeakyRelu(%u) {alpha=0.5}")


def test_defaults_go_through_nested_calls() -> None:
    model = _inlined("%y = l::outer(%x)", NESTED)
    assert _same(model, "%t = LeakyRelu(%x) {alpha=0.25} %u = Neg(%t) %y = LeakyRelu(%u) {alpha=0.25}")


def test_an_attribute_that_no_one_gives_is_left_out() -> None:
    function = "function l::f<a>(%p) -> (%q) { opset 18 %q = LeakyRelu(%p) {alpha=@a:float} }"
    result = inline(parse_model(f"{HEAD} %y = l::f(%x) }} {function}"))
    assert _same(result, "%y = LeakyRelu(%x)")


def test_two_calls_share_no_names() -> None:
    model = _inlined("%t = l::outer(%x) %y = l::outer(%t)", NESTED)
    assert len(model.graph.nodes) == 6


def test_calls_in_bodies_and_bodies_in_functions() -> None:
    function = """function l::f(%p, %c) -> (%q) { opset 18 %n = Neg(%p) %q = If(%c) {
      then_branch=graph a() -> (%r) { %r = Add(%n, %p) }, else_branch=graph b() -> (%r) { %r = Relu(%n) } } }"""
    body = """%y = If(%c) { then_branch=graph t() -> (%v) { %v = l::f(%x, %c) },
      else_branch=graph e() -> (%w) { %k = l::f(%x, %c) %w = l::f(%k, %c) } }"""
    model = _inlined(body, function)
    then_body, else_body = model.graph.nodes[0].subgraphs()
    assert [node.op for node in then_body.nodes] == ["Neg", "If"]
    assert [node.op for node in else_body.nodes] == ["Neg", "If", "Neg", "If"]


def test_left_out_inputs_and_outputs() -> None:
    function = "function l::f(%p, %low, %high) -> (%q, %r) { opset 18 %q = Neg(%p) %r = Clip(%p, %low, %high) }"
    model = inline(parse_model(f"{HEAD} init %k: float32[] = [1.0] _, %y = l::f(%x, _, %k) }} {function}"))
    check(model)
    assert [node.inputs for node in model.graph.nodes] == [("x",), ("x", "", "k")]


def test_an_input_that_is_an_output_is_copied() -> None:
    function = "function l::f(%p) -> (%p, %p) { opset 18 }"
    model = inline(parse_model(f"{HEAD} %a, %b = l::f(%x) %y = Add(%a, %b) }} {function}"))
    assert _same(model, "%a = Identity(%x) %b = Identity(%x) %y = Add(%a, %b)")


def test_overloads_are_told_apart() -> None:
    functions = "function l::f:one(%p) -> (%q) { opset 18 %q = Neg(%p) } "
    functions += "function l::f:two(%p) -> (%q) { opset 18 %q = Relu(%p) }"
    assert _same(inline(parse_model(f"{HEAD} %y = l::f:two(%x) }} {functions}")), "%y = Relu(%x)")


def test_a_body_given_as_attribute_speaks_of_values_at_the_call() -> None:
    function = """function l::f<body>(%x, %t) -> (%q) { opset 18 %a = Neg(%x)
      %q = If(%t) {then_branch=@body:graph, else_branch=graph e() -> (%r) { %r = Relu(%a) } } }"""
    call = "%a = Abs(%x) %n = Neg(%x) %y = l::f(%n, %c) {body=graph b() -> (%z) { %z = Add(%a, %x) }}"
    model = inline(parse_model(f"{HEAD} {call} }} {function}"))
    given, _ = model.graph.nodes[3].subgraphs()
    assert given.nodes[0].inputs == ("a", "x")


def test_domains_that_only_functions_import_are_imported() -> None:
    function = "function l::f(%p) -> (%q) { opset ai.onnx.ml 3 %q = ai.onnx.ml::Scaler(%p) }"
    assert inline(parse_model(f"{HEAD} %y = l::f(%x) }} {function}")).opsets == {"": 18, "l": 1, "ai.onnx.ml": 3}


def test_another_opset_is_refused_only_where_it_matters() -> None:
    function = "function l::f(%p) -> (%q) {{ opset 13 %q = {op}(%p) }}"
    assert _same(inline(parse_model(f"{HEAD} %y = l::f(%x) }} {function.format(op='Neg')}")), "%y = Neg(%x)")
    with pytest.raises(ModelError, match="means ReduceMax of opset 13, the model's is 18"):
        inline(parse_model(f"{HEAD} %y = l::f(%x) }} {function.format(op='ReduceMax')}"))


def test_a_function_that_calls_itself_is_an_error() -> None:
    function = "function l::f(%p) -> (%q) { opset 18 opset l 1 %q = l::f(%p) }"
    with pytest.raises(ModelError, match="function 'f' of domain 'l' calls itself"):
        inline(parse_model(f"{HEAD} %y = l::f(%x) }} {function}"))


def test_too_many_operands_are_an_error() -> None:
    function = "function l::f(%p) -> (%q) { opset 18 %q = Neg(%p) }"
    with pytest.raises(ModelError, match="too many inputs"):
        inline(parse_model(f"{HEAD} %y = l::f(%x, %x) }} {function}"))
