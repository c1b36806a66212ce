"""Slices: connected, convex, of the stated size, and computing what the whole model computes."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from block_models import Writer, attention, blocks, cell
from hypothesis import given, settings
from hypothesis import strategies as st
from observing import drawn, seen, values_of, without_run
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from miscompile.base.errors import SpecError
from miscompile.base.rng import stream
from miscompile.graph.check import check
from miscompile.graph.edges import producers, reads
from miscompile.graph.emit import emit
from miscompile.graph.model import Graph, Model, Node, TensorType
from miscompile.graph.text.parser import parse_model
from miscompile.ops.seed import Seed
from miscompile.producers.slices.binding import bindings, fed, normalised
from miscompile.producers.slices.observation import Observed
from miscompile.producers.slices.slices import SliceLimits, SliceTally, kind_of, slices


@cache
def observed_blocks() -> dict[str, Observed]:
    return {name: seen(model) for name, model in blocks().items()}


@cache
def all_slices(least: int = 3, most: int = 8) -> tuple[tuple[str, Seed], ...]:
    cut = SliceLimits(least, most)
    return tuple(
        (name, seed)
        for name, whole in observed_blocks().items()
        for seed in slices(whole, name, cut, stream(1, "slices", name))
    )


def model_of(seed: Seed) -> Model:
    return Model(seed.graph, {"": seed.opset}, (), 8)


def places(seed: Seed, graph: Graph) -> set[int]:
    made = producers(graph)
    return {made[name] for node in seed.graph.nodes for name in node.outputs if name}


def live(nodes: tuple[Node, ...], constants: set[str]) -> list[Node]:
    """Nodes that depend on more than constants."""
    fixed = set(constants)
    found = []
    for node in nodes:
        if set(reads(node)) <= fixed:
            fixed.update(node.outputs)
        else:
            found.append(node)
    return found


def test_slices_are_correct_models_of_the_stated_size() -> None:
    assert len(all_slices()) > 60
    for _, seed in all_slices():
        check(model_of(seed))
        assert 3 <= len(live(seed.graph.nodes, set(seed.graph.initializers))) <= 8
        assert seed.graph.inputs
        assert len(seed.pinned) < len(seed.graph.inputs)


def test_slices_are_convex() -> None:
    for name, seed in all_slices():
        graph = observed_blocks()[name].model.graph
        members, made = places(seed, graph), producers(graph)
        left: set[int] = set()  # nodes behind the slice that are not in it
        for place, node in enumerate(graph.nodes):
            sources = {made[value] for value in reads(node) if value in made}
            if place in members:
                assert not sources & left, f"{seed.source} is left and entered again"
            elif sources & (members | left):
                left.add(place)


def test_slices_are_connected() -> None:
    for _, seed in all_slices():
        groups: list[set[str]] = []
        for node in seed.graph.nodes:
            names = {name for name in (*reads(node), *node.outputs) if name and name not in seed.graph.initializers}
            joined = [group for group in groups if group & names]
            groups = [group for group in groups if not group & names] + [names.union(*joined)]
        assert len(groups) == 1, seed.operators


def test_a_slice_computes_what_the_whole_model_computes() -> None:
    for name, seed in all_slices():
        whole = observed_blocks()[name].model
        flow = values_of(whole, drawn(whole, 7))
        feed = {info.name: flow[info.name] for info in seed.graph.inputs}
        names = [info.name for info in seed.graph.outputs]
        for output, result in zip(names, ReferenceEvaluator(emit(model_of(seed))).run(None, feed), strict=True):
            np.testing.assert_array_equal(result, flow[output])
            assert result.dtype == flow[output].dtype
        for fixed, value in seed.pinned.items():
            np.testing.assert_array_equal(value.array, flow[fixed])


def test_inner_inputs_are_fed_what_was_seen() -> None:
    inner = [
        (info, seed.ranges[info.name])
        for _, seed in all_slices()
        for info in seed.graph.inputs
        if info.name.startswith(("softmax", "sigmoid", "relu"))
    ]
    assert len(inner) > 10
    for info, span in inner:
        assert isinstance(info.type, TensorType)
        assert span.lo >= 0
        if not info.name.startswith("relu"):
            assert span.hi <= 1


def test_computed_shapes_are_pinned() -> None:
    pinned = [value for _, seed in all_slices() for value in seed.pinned.values()]
    assert pinned
    assert {value.dtype for value in pinned} == {"int64"}


def test_weights_and_what_works_on_them_alone_are_no_inputs() -> None:
    whole = observed_blocks()["attention"]
    turned = {node.outputs[0] for node in whole.model.graph.nodes if node.inputs[0] in whole.model.graph.initializers}
    assert turned
    for name, seed in all_slices():
        if name == "attention":
            assert not turned & {info.name for info in seed.graph.inputs}


def test_no_two_slices_of_a_model_are_alike() -> None:
    for name in blocks():
        marks = [kind_of(seed) for owner, seed in all_slices() if owner == name]
        assert len(set(marks)) == len(marks)


def test_layers_that_differ_in_large_weights_give_one_slice() -> None:
    writer = Writer(4)
    value = "x"
    for _ in range(4):
        value = writer.node("Relu", writer.node("Add", writer.node("MatMul", value, writer.weight(6, 6)), "x"))
    whole = seen(writer.model({"x": (2, 6)}, value))
    found = list(slices(whole, "layers", SliceLimits(3, 3), stream(0, "s")))
    layers = [seed for seed in found if seed.operators == ("MatMul", "Add", "Relu") and len(seed.graph.inputs) == 2]
    assert len(layers) == 1


@settings(max_examples=8)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(0, 6))
def test_the_same_stream_cuts_the_same_slices(seed: int, least: int, more: int) -> None:
    whole, cut = observed_blocks()["cell"], SliceLimits(least, least + more, per_model=20)
    first, second = ([s.graph for s in slices(whole, "cell", cut, stream(seed, "s"))] for _ in range(2))
    assert first == second
    assert all(len(graph.nodes) <= cut.most for graph in first)


def test_without_a_run_slices_have_no_ranges_but_their_types() -> None:
    found = list(slices(without_run(cell()), "cell", SliceLimits(), stream(1, "s")))
    assert found
    inner = {name for seed in found for name in seed.ranges} - {"x", "h", "c"}
    assert not inner
    for seed in found:
        check(model_of(seed))


def test_foreign_and_random_operators_are_left_out_and_counted() -> None:
    writer = Writer(5)
    noisy = writer.node("Add", writer.node("RandomNormalLike", "x"), "x")
    foreign = writer.node("Strange", noisy, domain="local")
    value = writer.node("Abs", writer.node("Neg", writer.node("Relu", writer.node("Add", "x", noisy))))
    model = writer.model({"x": (2, 3)}, value, foreign)
    tally = SliceTally()
    found = list(slices(seen(model), "noisy", SliceLimits(2, 4), stream(0, "s"), tally))
    operators = {op for seed in found for op in seed.operators}
    assert operators == {"Add", "Relu", "Neg", "Abs"}
    assert tally.reasons["nodes of local operator Strange"] == 1
    assert tally.reasons["nodes of random operator RandomNormalLike"] == 1


def test_large_weights_and_values_are_left_out_and_said() -> None:
    writer = Writer(6)
    value = writer.node("Relu", writer.node("MatMul", writer.node("Neg", "x"), writer.weight(64, 64)))
    model = writer.model({"x": (2, 64)}, value)
    for cut, reason in (
        (SliceLimits(3, 3, weights=8192), "slices with weights of more than 8 KiB"),
        (SliceLimits(3, 3, elements=100), "slices with values of more than 100 elements"),
    ):
        tally = SliceTally()
        assert not list(slices(seen(model), "large", cut, stream(0, "s"), tally))
        assert reason in tally.reasons
        assert any(line.startswith(reason) for line in tally.lines())
    assert list(slices(seen(model), "large", SliceLimits(3, 3), stream(0, "s")))


def test_functions_are_inlined_first() -> None:
    model = parse_model(
        "ir 10 opset 18 opset l 1 graph g(%x: float32[2]) -> (%y: float32[2]) "
        "{ %a = l::twice(%x) %y = l::twice(%a) } "
        "function l::twice(%a) -> (%b) { opset 18 %c = Relu(%a) %b = Add(%c, %a) }"
    )
    found = list(slices(seen(model), "functions", SliceLimits(3, 4), stream(0, "s")))
    assert found
    assert {op for seed in found for op in seed.operators} == {"Relu", "Add"}


def conditional() -> Model:
    """A model whose If adds a captured value in one branch, and negates in the other."""
    writer = Writer(7)
    scaled = writer.node("Mul", "x", writer.weight(3))
    truth = writer.node("Greater", writer.node("ReduceSum", "x", keepdims=0), writer.constant(np.float32(0)))
    result = helper.make_tensor_value_info("inner", TensorProto.FLOAT, [2, 3])
    bodies = {
        "then_branch": helper.make_graph([helper.make_node("Add", [scaled, "x"], ["inner"])], "then", [], [result]),
        "else_branch": helper.make_graph(
            [helper.make_node("Neg", [scaled], ["other"])],
            "else",
            [],
            [helper.make_tensor_value_info("other", TensorProto.FLOAT, [2, 3])],
        ),
    }
    chosen = writer.node("If", truth, **bodies)
    return writer.model({"x": (2, 3)}, writer.node("Relu", writer.node("Add", chosen, scaled)))


def test_control_flow_goes_whole_and_what_it_captures_flows_in() -> None:
    found = [s for s in slices(seen(conditional()), "if", SliceLimits(3, 4), stream(0, "s")) if "If" in s.operators]
    assert found
    for seed in found:
        check(model_of(seed))
        known = {info.name for info in seed.graph.inputs} | {name for n in seed.graph.nodes for name in n.outputs}
        node = next(node for node in seed.graph.nodes if node.op == "If")
        assert set(reads(node)) <= known | set(seed.graph.initializers)
        assert seed.types[node.outputs[0]] == TensorType("float32", (2, 3))


def test_small_models_are_one_slice() -> None:
    writer = Writer(8)
    whole = seen(writer.model({"x": (2, 3)}, writer.node("Relu", writer.node("Neg", "x"))))
    (only,) = slices(whole, "small", SliceLimits(3, 12), stream(0, "s"))
    assert only.operators == ("Neg", "Relu")


def test_symbolic_sizes_are_bound() -> None:
    shapes = {info.type.shape for info in seen(attention()).model.graph.inputs if isinstance(info.type, TensorType)}
    assert shapes == {(2, 8, 8)}


def test_sizes_in_branches_and_unnamed_batches_of_states_are_tried() -> None:
    """As in a recurrent model: the state's batch has no name, and the length stands in a branch only."""
    model = parse_model(
        "ir 10 opset 18 graph g(%x: float32[?, ?], %state: float32[2, ?, 4], %c: bool[]) -> (%y: float32[?, ?]) "
        "{ %y = If(%c) {then_branch = graph then () -> (%a: float32[?, ?]) "
        "{ %n = Constant() {value_ints = [100, 40]} %a = Reshape(%x, %n) },"
        " else_branch = graph other () -> (%b: float32[?, ?]) { %b = Neg(%x) }} }"
    )
    shapes = [
        tuple(info.type.shape for info in fed(bound.graph) if isinstance(info.type, TensorType))
        for bound in bindings(normalised(model))
    ]
    assert shapes[:4] == [
        ((2, 8), (2, 8, 4), ()), ((2, 8), (2, 2, 4), ()), ((2, 100), (2, 100, 4), ()), ((2, 100), (2, 2, 4), ()),
    ]  # fmt: skip


def test_limits_that_no_slice_meets_are_refused() -> None:
    for least, most in ((0, 3), (4, 3)):
        with pytest.raises(SpecError):
            SliceLimits(least, most)
    assert replace(SliceLimits(), most=3) == SliceLimits(3, 3)
