"""Edges, order, renaming and pruning."""

from dataclasses import replace

import pytest
from graph_strategies import reordered, valid_models
from hypothesis import given, settings
from hypothesis import strategies as st

from miscompile.base.errors import ModelError
from miscompile.graph.check import check
from miscompile.graph.edges import all_names, captured, producers, reads, toposort, users
from miscompile.graph.equality import difference, same_model
from miscompile.graph.model import Model, Node
from miscompile.graph.prune import prune
from miscompile.graph.rename import NameSupply, redirect, rename
from miscompile.graph.text.parser import parse_model
from miscompile.graph.text.printer import print_model

CAPTURING = """opset 21
graph g(%x: float32[2], %c: bool[], %idle: float32[2]) -> (%y: float32[2]) {
  init %w: float32[2] = [1.0, 2.0]
  init %lost: float32[2] = [1.0, 2.0]
  type %lost: float32[2]
  %a: float32[2] = Relu(%x)
  %dead: float32[2] = Neg(%a)
  %y = If(%c) {
    then_branch=graph yes() -> (%p) { %p = Add(%a, %w) %waste = Neg(%x) },
    else_branch=graph no() -> (%q) { init %own: float32[] = [1.0] %q = Mul(%a, %own) }
  }
}
"""


def test_captures_producers_and_users() -> None:
    graph = parse_model(CAPTURING).graph
    then_body, else_body = graph.nodes[2].subgraphs()
    assert captured(then_body) == {"a", "w", "x"}
    assert captured(else_body) == {"a"}
    assert captured(graph) == set()
    assert producers(graph) == {"a": 0, "dead": 1, "y": 2}
    assert users(graph) == {"x": (0, 2), "a": (1, 2), "w": (2,), "c": (2,)}
    assert all_names(graph) == {"x", "c", "idle", "y", "w", "lost", "a", "dead", "p", "waste", "q", "own"}


def test_captured_values_are_read_in_an_order_that_does_not_vary() -> None:
    """Names in a set have another order in every process."""
    names = [f"v{number}" for number in (31, 7, 19, 2, 40, 11, 5)]
    chain = " ".join(f"%s{place} = Add(%{name}, %{name})" for place, name in enumerate(names))
    text = f"opset 21 graph g(%c: bool[]) -> (%y) {{ %y = If(%c) {{ then_branch=graph t() -> (%s0) {{ {chain} }} }} }}"
    assert list(reads(parse_model(text).graph.nodes[0])) == ["c", *sorted(names)]


def test_prune_drops_what_no_output_needs() -> None:
    model = parse_model(CAPTURING + "function f::unused(%a) -> (%b) { opset 21 %b = Relu(%a) }")
    pruned = prune(model)
    assert [node.op for node in pruned.graph.nodes] == ["Relu", "If"]
    assert list(pruned.graph.initializers) == ["w"]
    assert set(pruned.graph.types) == {"a"}
    assert [info.name for info in pruned.graph.inputs] == ["x", "c", "idle"]
    assert "waste" not in print_model(pruned)
    assert pruned.functions == ()
    assert [info.name for info in prune(model, inputs=True).graph.inputs] == ["x", "c"]


def test_prune_keeps_functions_that_bodies_and_functions_call() -> None:
    model = parse_model(
        "opset 21 opset f 1 graph g(%x: float32[2], %c: bool[]) -> (%y) { %y = If(%c) {"
        " then_branch=graph a() -> (%p) { %p = f::outer(%x) }, else_branch=graph b() -> (%q) { %q = Neg(%x) } } }"
        " function f::inner(%a) -> (%b) { opset 21 %b = Relu(%a) }"
        " function f::outer(%a) -> (%b) { opset 21 opset f 1 %d = Neg(%a) %b = f::inner(%a) }"
        " function f::third(%a) -> (%b) { opset 21 %b = Relu(%a) }"
    )
    pruned = prune(model)
    assert [function.name for function in pruned.functions] == ["inner", "outer"]
    assert [node.op for node in pruned.functions[1].nodes] == ["inner"]


def test_prune_keeps_the_default_of_an_input_that_stays() -> None:
    model = parse_model("opset 21 graph g(%x: int8[], %y: int8[]) -> (%x) { init %y: int8[] = [1] }")
    assert same_model(prune(model), model)
    assert list(prune(model, inputs=True).graph.initializers) == []


@given(valid_models(), st.booleans())
@settings(max_examples=100)
def test_prune_is_idempotent_and_keeps_models_valid(model: Model, inputs: bool) -> None:
    pruned = prune(model, inputs=inputs)
    assert difference(prune(pruned, inputs=inputs), pruned) is None
    assert pruned.graph.outputs == model.graph.outputs
    check(pruned)


@given(st.data(), valid_models())
@settings(max_examples=60)
def test_sorting_any_order_gives_a_valid_one(data: st.DataObject, model: Model) -> None:
    check(data.draw(reordered(model)))
    assert toposort(model.graph) is model.graph


def test_a_circle_is_an_error() -> None:
    graph = parse_model("opset 21 graph g() -> (%a) { %a = Relu(%b) %b = Neg(%a) }").graph
    with pytest.raises(ModelError, match=r"the values that Relu makes \(a\) depend on themselves"):
        toposort(graph)


def test_renaming_reaches_into_bodies() -> None:
    graph = parse_model(CAPTURING).graph
    renamed = rename(graph, {"a": "A", "p": "P", "w": "W"})
    assert all_names(renamed) == (all_names(graph) - {"a", "p", "w"}) | {"A", "P", "W"}
    assert difference(rename(renamed, {"A": "a", "P": "p", "W": "w"}), graph) is None
    with pytest.raises(ModelError, match="one name"):
        rename(graph, {"a": "x"})


def test_names_are_given_once() -> None:
    names = NameSupply(["v", "v_2"])
    assert [names.fresh("v") for _ in range(3)] == ["v_1", "v_3", "v_4"]
    assert names.fresh("") == "_1"
    assert "v_3" in names
    with pytest.raises(ModelError, match="already a value named 'v'"):
        names.claim("v")


def test_redirecting_uses_reaches_captures() -> None:
    graph = parse_model(CAPTURING).graph
    redirected = replace(graph, nodes=tuple(redirect(node, {"a": "x"}) for node in graph.nodes))
    assert "a" not in users(redirected)
    assert users(redirected)["x"] == (0, 1, 2)


def test_a_body_that_defines_the_name_itself_is_left_alone() -> None:
    text = CAPTURING.replace("%own", "%a").replace("Mul(%a, %a)", "Abs(%a)")
    then_body, else_body = redirect(parse_model(text).graph.nodes[-1], {"a": "x"}).subgraphs()
    assert captured(then_body) == {"x", "w"}
    assert captured(else_body) == set()


def test_a_node_without_bodies_is_not_copied_for_nothing() -> None:
    node = Node("Relu", ("x",), ("y",))
    assert redirect(node, {"other": "x"}) is node
