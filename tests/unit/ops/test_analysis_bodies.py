"""Facts of what If, Loop and Scan give: bounds that hold on every turn, and exactness only where it is sure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.attributes import PlainValue, attributes
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.ops.analysis import analyse, every_value, exact_outputs, require_well_formed
from miscompile.ops.spec import Operand

COUNT, TRUTH, F32 = TensorType("int64", ()), TensorType("bool", ()), TensorType("float32", (2,))
X = tensor(np.array([1.0, 2.0], np.float32))


def node(op: str, inputs: str, output: str, **given: PlainValue) -> Node:
    names = tuple("" if name == "_" else name for name in inputs.split())
    return Node(op, names, tuple(output.split()), attributes(given))


def graph(
    inputs: Mapping[str, TensorType],
    outputs: Mapping[str, TensorType],
    nodes: Sequence[Node],
    constants: Mapping[str, Tensor] | None = None,
) -> Graph:
    infos = [tuple(ValueInfo(name, kind) for name, kind in each.items()) for each in (inputs, outputs)]
    return Graph("g", infos[0], infos[1], tuple(nodes), dict(constants or {}))


def facts(nodes: Sequence[Node], feed: Mapping[str, Tensor], **constants: Tensor) -> dict[str, Operand]:
    return analyse(model(nodes, feed, **constants), feed)


def model(nodes: Sequence[Node], feed: Mapping[str, Tensor], **constants: Tensor) -> Model:
    inputs = {name: TensorType(value.dtype, value.shape) for name, value in feed.items()}
    last = [name for each in nodes for name in each.outputs if name]
    return Model(graph(inputs, dict.fromkeys(last, F32), nodes, constants), {"": 18})


def number(value: int) -> Tensor:
    return Tensor("int64", np.array(value, np.int64))


def truth(value: bool) -> Tensor:
    return Tensor("bool", np.array(value))


def branching(then: str = "Neg", other: str = "Relu") -> Node:
    bodies = {
        f"{name}_branch": graph({}, {f"{name}_y": F32}, [node(op, "x", f"{name}_y")])
        for name, op in (("then", then), ("else", other))
    }
    return node("If", "c", "y", **bodies)


def looping(body: Sequence[Node], *, inputs: str = "m _ x", go: str = "on", **constants: Tensor) -> Node:
    nodes = [*body, node("Identity", go, "go")]
    inner = graph({"i": COUNT, "on": TRUTH, "s": F32}, {"go": TRUTH, "s2": F32}, nodes, constants)
    return node("Loop", inputs, "y", body=inner)


def test_the_branch_that_is_taken_decides_where_the_condition_is_known() -> None:
    expected: dict[bool, tuple[float, float]] = {True: (-2, -1), False: (1, 2)}
    for chosen, bounds in expected.items():
        y = facts([branching()], {"x": X, "c": truth(chosen)})["y"]
        assert (y.facts.lo, y.facts.hi) == bounds
        assert y.facts.exact


def test_both_branches_count_where_it_is_computed() -> None:
    y = facts([node("Equal", "a b", "c"), branching()], {"x": X, "a": number(1), "b": number(2)})["y"]
    assert (y.facts.lo, y.facts.hi, y.facts.integral, y.facts.exact) == (-2, 2, True, True)


def test_a_condition_that_may_come_out_either_way_makes_the_results_inexact() -> None:
    nodes = [node("Exp", "a", "e"), node("Less", "e b", "c"), branching()]
    scalars = {"a": tensor(np.array(1, np.float32)), "b": tensor(np.array(2.7, np.float32))}
    y = facts(nodes, {"x": X, **scalars})["y"]
    assert (y.facts.lo, y.facts.hi, y.facts.exact) == (-2, 2, False)


def test_branches_of_different_shapes_leave_nothing_known() -> None:
    then = graph({}, {"t": F32}, [node("Neg", "x", "t")])
    other = graph({}, {"e": F32}, [node("Reshape", "x two", "e")], {"two": Tensor("int64", np.array([2, 1]))})
    nodes = [node("Equal", "a b", "c"), node("If", "c", "y", then_branch=then, else_branch=other)]
    feed = {"x": X, "a": number(1), "b": number(2)}
    assert "y" not in facts(nodes, feed)
    assert every_value(model(nodes, feed), feed) is None


@pytest.mark.parametrize(("turns", "most"), [(0, 2), (1, 4), (3, 16)])
def test_a_loop_is_gone_through_turn_by_turn(turns: int, most: float) -> None:
    y = facts([looping([node("Add", "s s", "s2")])], {"x": X}, m=number(turns))["y"]
    assert (y.facts.hi, y.facts.exact, y.facts.integral) == (most, True, True)


def test_a_loop_that_may_end_early_gives_what_any_turn_leaves() -> None:
    body = [node("Add", "s s", "s2"), node("ReduceMax", "s2", "top", keepdims=0), node("Less", "top k", "more")]
    y = facts([looping(body, go="more", k=tensor(np.array(5, np.float32)))], {"x": X}, m=number(3))["y"]
    assert (y.facts.lo, y.facts.hi, y.facts.exact) == (2, 16, True)


def test_an_end_that_rounding_decides_makes_the_result_inexact() -> None:
    body = [node("Add", "s s", "s2"), node("Exp", "s", "e"), node("ReduceMax", "e", "top", keepdims=0)]
    body.append(node("Less", "top k", "more"))
    y = facts([looping(body, go="more", k=tensor(np.array(5, np.float32)))], {"x": X}, m=number(3))["y"]
    assert not y.facts.exact


def test_a_long_loop_that_changes_nothing_any_more_is_known() -> None:
    feed = {"x": X, "lo": tensor(np.array(0, np.float32)), "hi": tensor(np.array(2, np.float32))}
    y = facts([looping([node("Clip", "s lo hi", "s2")])], feed, m=number(10**6))["y"]
    assert y.facts.inside(0, 2)
    assert y.facts.exact


def test_of_a_long_loop_whose_values_grow_nothing_is_claimed() -> None:
    body = [node("Add", "s s", "s2")]
    assert exact_outputs(model([looping(body)], {"x": X}, m=number(10**6)), {"x": X}) == frozenset()


def test_the_number_of_a_turn_is_known_in_it() -> None:
    body = [node("Cast", "i", "f", to=1), node("Add", "f x", "s2")]
    y = facts([looping(body)], {"x": X}, m=number(4))["y"]
    assert (y.facts.lo, y.facts.hi) == (4, 5)


def scanning(axis: int = 0, out: int = 0) -> Node:
    inner = graph({"s": F32, "r": F32}, {"s2": F32, "row": F32}, [node("Add", "s r", "s2"), node("Neg", "s2", "row")])
    axes = {"scan_input_axes": [axis], "scan_output_axes": [out]}
    return node("Scan", "x z", "y rows", body=inner, num_scan_inputs=1, **axes)


def test_a_scan_makes_as_many_turns_as_there_are_slices() -> None:
    z = tensor(np.ones((3, 2), np.float32))
    found = facts([scanning()], {"x": X, "z": z})
    assert found["y"].facts.hi == 5
    assert (found["rows"].shape, found["rows"].facts.lo, found["rows"].facts.hi) == ((3, 2), -5, -2)
    turned = facts([scanning(-1, 1)], {"x": X, "z": tensor(np.ones((2, 3), np.float32))})
    assert turned["rows"].shape == (2, 3)
    assert turned["rows"].facts.exact


@pytest.mark.parametrize("count", [0, 3, None])
def test_a_scan_that_scans_no_input_or_more_than_it_has_is_broken(count: int | None) -> None:
    whole = scanning()
    given = {name: one for name, one in whole.attributes.items() if name != "num_scan_inputs"}
    more = {} if count is None else attributes({"num_scan_inputs": count})
    feed = {"x": X, "z": tensor(np.ones((3, 2), np.float32))}
    broken = model([replace(whole, attributes={**given, **more})], feed)
    found = analyse(broken, feed)
    assert "y" not in found
    with pytest.raises(RejectedDraft):
        require_well_formed(broken, found)


def test_rules_of_operators_hold_in_bodies_and_in_branches_that_are_not_taken() -> None:
    axes = Tensor("int64", np.array([0, 0]))
    broken = graph({}, {"t": F32}, [node("ReduceSum", "x axes", "t", keepdims=1)], {"axes": axes})
    fine = graph({}, {"e": F32}, [node("Neg", "x", "e")])
    feed = {"x": X, "c": truth(False)}
    bad = model([node("If", "c", "y", then_branch=broken, else_branch=fine)], feed)
    with pytest.raises(RejectedDraft):
        require_well_formed(bad, analyse(bad, feed))
    good = model([branching()], feed)
    require_well_formed(good, analyse(good, feed))


def test_every_value_has_those_of_each_turn() -> None:
    feed = {"x": X}
    found = every_value(model([looping([node("Add", "s s", "s2")])], feed, m=number(3)), feed)
    assert found is not None
    assert sorted(x.facts.hi for x in found if x.name == "s2") == [4, 8, 16]
