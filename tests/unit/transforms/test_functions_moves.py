"""The single moves: cutting out a set, calling a function again, sharing an operator, calling twice, rewriting."""

import random
from collections import Counter
from dataclasses import replace

import pytest
from symbolic_values import terms_of
from wrapped_models import made

from miscompile.base.errors import ModelError, RejectedDraft
from miscompile.base.rng import stream
from miscompile.core.tensor import Tensor
from miscompile.graph.check import check
from miscompile.graph.model import Function, Model
from miscompile.graph.text.parser import parse_model
from miscompile.transforms.functions.calls import pure, share_operator, split_call
from miscompile.transforms.functions.compose import (
    FunctionPiece,
    Traits,
    call_of,
    cut,
    function_of,
    importing,
    splice,
    with_function,
)
from miscompile.transforms.functions.convex_sets import convex_set, links, wrappable
from miscompile.transforms.functions.matches import call_again
from miscompile.transforms.functions.regions import call_depth, regions
from miscompile.transforms.functions.rewrite import rewrite
from miscompile.transforms.functions.transform import describe

PLAINLY = Traits(attributes=0.0, constants=0.0, overloads=False)
HEAD = "ir 8 opset 17 graph g(%x: float32[2,3], %z: float32[2,3]) -> (%y: float32[2,3])"


def graph(body: str, functions: str = "", head: str = HEAD) -> Model:
    return parse_model(f"{head} {{ {body} }} {functions}")


def wrap(model: Model, places: set[int], traits: Traits = PLAINLY, seed: int = 0, region: int = 0) -> Model:
    """Wrap the nodes at `places` of a region, and call the function wherever else they are found."""
    changed, function, piece = wrap_once(model, places, traits, seed, region)
    return importing(call_again(changed, function, piece, 9))


def wrap_once(
    model: Model, places: set[int], traits: Traits = PLAINLY, seed: int = 0, region: int = 0
) -> tuple[Model, Function, FunctionPiece]:
    rng = stream(seed, "wrap")
    where = regions(model)[region]
    piece = cut(where, frozenset(places), rng, traits)
    function = function_of(piece, model, "f", rng, traits)
    call = call_of(function, piece.inputs, piece.outputs, piece.given)
    return with_function(where.put(splice(where.nodes, frozenset(places), call)), function, rng), function, piece


def sound(presented: Model, model: Model) -> Model:
    check(presented)
    assert terms_of(presented) == terms_of(model)
    return presented


def operators(model: Model) -> Counter[str]:
    return Counter(node.op for region in regions(model) for node in region.nodes)


def test_regions_are_the_graph_the_bodies_and_the_functions() -> None:
    assert [len(region.nodes) for region in regions(made("bodies"))] == [4, 2, 3, 1, 2, 3]
    inner = regions(made("bodies"))[1]
    assert sorted(inner.constants) == ["own", "three", "w", "yes"]
    assert [region.function for region in regions(made("nested"))] == [None, ("l", "outer", ""), ("l", "inner", "")]


def test_putting_nodes_forgets_the_types_of_values_that_are_gone() -> None:
    model = graph("%a: float32[2,3] = Neg(%x) %b: float32[2,3] = Neg(%a) %y = Add(%b, %z)")
    presented = sound(wrap(model, {0, 1}), model)
    assert set(presented.graph.types) == {"b"}


def test_convex_sets_have_no_path_out_and_back() -> None:
    model = graph("%a = Neg(%x) %b = Abs(%a) %c = Add(%a, %b) %y = Sub(%c, %z)")
    known = links(model.graph.nodes)
    assert known.closed({0, 2}) == {0, 1, 2}
    assert known.near(frozenset({1})) == [0, 2]
    for seed in range(50):
        chosen = convex_set(random.Random(seed), regions(model)[0])
        assert chosen is not None
        assert known.closed(chosen) == chosen


def test_outer_values_of_bodies_become_parameters() -> None:
    model = made("bodies")
    presented = sound(wrap(model, {1}), model)
    (function,) = presented.functions
    assert len(function.inputs) == 4
    assert set(presented.graph.nodes[1].inputs) == {"x", "a", "w", "c"}


def test_parts_of_bodies_and_of_functions_can_be_wrapped() -> None:
    model = made("bodies")
    for number, region in enumerate(regions(model)):
        presented = sound(wrap(model, {len(region.nodes) - 1}, region=number), model)
        assert call_depth(presented) >= 1
    nested = made("nested")
    presented = sound(wrap(nested, {0, 1}, region=1), nested)
    assert call_depth(presented) == 3
    (inner,) = [function for function in presented.functions if function.domain == "local"]
    assert inner.attributes == ("alpha",)


def test_initialisers_can_move_inside() -> None:
    model = made("plain")
    presented = sound(wrap(model, {0}, Traits(0.0, 1.0, overloads=False)), model)
    assert [node.op for node in presented.functions[0].nodes] == ["Constant", "Add"]
    assert len(presented.functions[0].inputs) == 1


def test_types_that_no_constant_can_have_stay_outside() -> None:
    head = "ir 9 opset 18 graph g(%x: float8e4m3fn[2]) -> (%y: float32[2])"
    text = "init %w: float32[] = [2.0] %y = DequantizeLinear(%x, %w)"
    model = parse_model(f"{head} {{ {text} }}")
    region = regions(model)[0]
    narrow = Tensor("float8e4m3fn", region.constants["w"].array.astype("uint8"))
    piece = cut(
        replace(region, constants={"w": narrow}), frozenset({0}), random.Random(0), Traits(0.0, 1.0, overloads=False)
    )
    assert piece.constants == {}


def test_attributes_come_from_the_call_or_from_defaults() -> None:
    model = graph("%y = LeakyRelu(%x) {alpha=0.5}", head="ir 9" + HEAD[4:])
    kinds = set()
    for seed in range(20):
        presented = sound(wrap(model, {0}, Traits(1.0, 0.0, overloads=False), seed), model)
        (function,) = presented.functions
        kinds.add((function.attributes, tuple(function.defaults), tuple(presented.graph.nodes[0].attributes)))
    assert kinds == {(("alpha",), (), ("alpha",)), ((), ("alpha",), ())}


def test_the_same_nodes_found_again_call_the_same_function() -> None:
    model = made("twice")
    presented = sound(wrap(model, {0, 1}, Traits(1.0, 0.0, overloads=False)), model)
    assert describe(presented) == {"functions": 1, "calls": 2, "depth": 1}
    without = sound(wrap(model, {0, 1}), model)
    assert describe(without)["calls"] == 1, "the slopes differ, and neither call hands its own over"


def test_occurrences_need_the_same_constants_inside() -> None:
    model = graph(
        """init %k: float32[] = [2.0] init %l: float32[] = [2.0] init %m: float32[] = [3.0]
        %a = Mul(%x, %k) %b = Mul(%z, %l) %c = Mul(%x, %m) %d = Add(%a, %b) %y = Add(%c, %d)"""
    )
    presented = sound(wrap(model, {0}, Traits(0.0, 1.0, overloads=False)), model)
    assert describe(presented)["calls"] == 2


@pytest.mark.parametrize(
    ("body", "places", "count"),
    [
        ("%a = Neg(%x) %b = Neg(%z) %c = Neg(%a) %d = Neg(%c) %e = Sub(%a, %b) %f = Sub(%c, %d) %y = Add(%e, %f)",
         {0, 1}, 1),
        ("%a = Neg(%x) %b = Abs(%a) %c = Neg(%z) %d = Abs(%c) %e = Add(%c, %d) %y = Add(%b, %e)", {0, 1}, 1),
        ("%a = Add(%x, %x) %b = Add(%x, %z) %y = Sub(%a, %b)", {0}, 1),
    ],
    ids=["one node feeds the other", "an inner value is used outside", "one operand twice"],
)  # fmt: skip
def test_what_one_call_cannot_stand_for_is_left_alone(body: str, places: set[int], count: int) -> None:
    model = graph(body)
    assert describe(sound(wrap(model, places), model))["calls"] == count


def test_nodes_between_the_same_nodes_keep_them_apart() -> None:
    model = graph(
        """%a = Neg(%x) %b = Neg(%z) %p = Sub(%a, %b)
        %c = Neg(%p) %m = Abs(%c) %d = Neg(%m) %q = Sub(%c, %d) %e = Add(%p, %q) %y = Mul(%e, %a)"""
    )
    presented = sound(wrap(model, {0, 1, 2}), model)
    assert describe(presented)["calls"] == 1


def test_one_function_for_all_calls_of_an_operator() -> None:
    model = made("bodies")
    most = 0
    for seed in range(30):
        presented = sound(importing(share_operator(model, random.Random(seed), PLAINLY)), model)
        assert describe(presented)["functions"] == 1
        most = max(most, describe(presented)["calls"])
    assert most >= 4


def test_operands_that_only_some_calls_have_are_left_out_by_the_others() -> None:
    model = graph(
        """init %low: float32[] = [-1.0] init %high: float32[] = [1.0]
        %a = Clip(%x, _, %high) %b = Clip(%a, %low, _) %y = Clip(%b, %low, %high)"""
    )
    found = set()
    for seed in range(20):
        presented = sound(importing(share_operator(model, random.Random(seed), PLAINLY)), model)
        calls = [node for node in presented.graph.nodes if node.domain == "local"]
        found.add(tuple("" in call.inputs for call in calls))
    assert (True, True, False) in found


def test_calls_that_are_made_twice_share_their_users() -> None:
    model = graph("%a = Neg(%x) %b = Add(%a, %z) %c = Sub(%a, %x) %y = Mul(%b, %c)")
    presented = wrap(model, {0})
    twins = sound(split_call(presented, random.Random(1)), model)
    calls = [node for node in twins.graph.nodes if node.domain == "local"]
    assert len(calls) == 2
    assert calls[0].inputs == calls[1].inputs
    used = Counter(name for node in twins.graph.nodes for name in node.inputs)
    assert all(used[call.outputs[0]] == 1 for call in calls)


def test_the_users_in_bodies_are_divided_as_well() -> None:
    model = made("bodies")
    presented = wrap(model, {0})
    for seed in range(10):
        twins = sound(split_call(presented, random.Random(seed)), model)
        assert operators(twins)["f"] == operators(presented)["f"] + 1


def test_calls_with_one_user_are_not_made_twice() -> None:
    model = graph("%a = Neg(%x) %y = Add(%a, %z)")
    with pytest.raises(RejectedDraft):
        split_call(wrap(model, {0}), random.Random(0))


@pytest.mark.parametrize("node", ["RandomNormalLike(%x)", "Dropout(%x)", "foreign::Op(%x)"])
def test_what_may_give_other_values_each_time_is_called_once(node: str) -> None:
    head = HEAD.replace("opset 17", "opset 17 opset foreign 1")
    model = graph(f"%a = {node} %b = Add(%a, %z) %y = Mul(%a, %b)", head=head)
    with pytest.raises(RejectedDraft):
        split_call(wrap(model, {0}), random.Random(0))
    assert not pure(model.graph.nodes, model)
    assert not pure(wrap(model, {0}).graph.nodes, wrap(model, {0}))


def test_forward_puts_a_function_before_a_function() -> None:
    model = made("plain")
    presented = wrap(model, {1}, Traits(1.0, 0.0, overloads=False))
    front = sound(rewrite(presented, random.Random(0), "forward"), model)
    assert describe(front) == {"functions": 2, "calls": 3, "depth": 2}
    (new,) = [function for function in front.functions if function.name.startswith("forward_")]
    assert [(node.op, set(node.attributes)) for node in new.nodes] == [("f", {*new.attributes, *new.defaults})]
    assert {node.op for node in front.graph.nodes if node.domain == "local"} == {new.name}


def test_a_closure_captures_the_parameters() -> None:
    model = made("plain")
    presented = wrap(model, {1, 3}, Traits(1.0, 0.0, overloads=False))
    seen = set()
    for seed in range(20):
        closed = sound(rewrite(presented, random.Random(seed), "closure"), model)
        (new,) = [function for function in closed.functions if function.name.startswith("closure_")]
        (carrier,) = [node for node in new.nodes if node.attributes and node.op in ("If", "Loop")]
        assert all(any(inner.op == "f" for inner in body.nodes) for body in carrier.subgraphs())
        seen.add(carrier.op)
    assert seen == {"If", "Loop"}


def test_a_closure_is_not_made_where_bodies_may_lack_the_type() -> None:
    old = wrap(Model(made("plain").graph, {"": 13}, (), 8), {1})
    with pytest.raises(RejectedDraft, match="no function can be rewritten"):
        rewrite(old, random.Random(0), "closure")
    assert rewrite(old, random.Random(0), "none") is old


def test_a_closure_is_not_made_where_a_parameter_may_be_left_out() -> None:
    function = "function l::f(%p, %low) -> (%q) { opset 17 %q = Clip(%p, %low) }"
    model = graph("%y = l::f(%x)", function, HEAD.replace("opset 17", "opset 17 opset l 1"))
    with pytest.raises(RejectedDraft):
        rewrite(model, random.Random(0), "closure")
    assert describe(rewrite(model, random.Random(0), "any"))["depth"] in (1, 2)


def test_values_that_calls_cannot_hand_over_stay() -> None:
    model = parse_model(
        """ir 8 opset 17 graph g(%x: float32[2]) -> (%y: float32[2]) {
        init %s = sparse [2] float32[1] [2.0] at int64[1] [1] %a = Add(%x, %s) %y = Neg(%a) }"""
    )
    assert wrappable(regions(model)[0]) == {1}


def test_bodies_that_a_call_hands_over_stay() -> None:
    function = """function l::f<body>(%p, %c) -> (%q) { opset 17 %n = Neg(%p)
      %q = If(%c) {then_branch=@body:graph, else_branch=graph e() -> (%r) { %r = Relu(%n) } } }"""
    model = graph("%y = Neg(%x)", function)
    assert wrappable(regions(model)[1]) == {0}


def test_functions_that_call_themselves_are_an_error() -> None:
    function = "function l::f(%p) -> (%q) { opset 17 opset l 1 %q = l::f(%p) }"
    with pytest.raises(ModelError, match="calls itself"):
        describe(graph("%y = l::f(%x)", function, HEAD.replace("opset 17", "opset 17 opset l 1")))


def test_a_domain_that_is_taken_is_not_used() -> None:
    model = graph("%a = local::Op(%x) %y = Neg(%a)", head=HEAD.replace("opset 17", "opset 17 opset local 3"))
    presented = wrap(model, {1})
    assert presented.opsets == {"": 17, "local": 3, "local_1": 1}
