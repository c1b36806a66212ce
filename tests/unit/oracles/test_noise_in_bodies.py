"""Noise within the bodies of If, Loop and Scan moves the values there, and noise of zero changes nothing."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator
from oracle_cases import full, node

from miscompile.base.errors import ModelError
from miscompile.core.case import Case
from miscompile.core.outcome import Values
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.attributes import PlainValue, attributes
from miscompile.graph.check import check
from miscompile.graph.emit import to_program
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.read import read
from miscompile.oracles.montecarlo import THRESHOLD, judge_noise, noisy

F32 = TensorType("float32", (3,))
COUNT, TRUTH = TensorType("int64", ()), TensorType("bool", ())
X = full([1.0, 2.0, 4.0])


def body(
    nodes: Sequence[Node],
    outputs: Mapping[str, TensorType],
    inputs: Mapping[str, TensorType] | None = None,
    constants: Mapping[str, Tensor] | None = None,
) -> Graph:
    infos = [tuple(ValueInfo(name, kind) for name, kind in each.items()) for each in (inputs or {}, outputs)]
    return Graph("body", infos[0], infos[1], tuple(nodes), dict(constants or {}))


def block(op: str, inputs: tuple[str, ...], outputs: tuple[str, ...], **given: PlainValue) -> Node:
    return Node(op, inputs, outputs, attributes(given))


def case_of(
    nodes: Sequence[Node],
    inputs: Mapping[str, Tensor],
    outputs: Mapping[str, TensorType],
    constants: Mapping[str, Tensor] | None = None,
) -> Case:
    graph = Graph(
        "g",
        tuple(ValueInfo(name, TensorType(value.dtype, value.shape)) for name, value in inputs.items()),
        tuple(ValueInfo(name, kind) for name, kind in outputs.items()),
        tuple(nodes),
        dict(constants or {}),
    )
    case = Case(to_program(Model(graph, {"": 18}, ir_version=10)), (tuple(inputs.values()),))
    check(case.program.payload)
    return case


def evaluate(case: Case) -> Values:
    check(case.program.payload)  # the evaluator takes models that no compiler reads
    session = ReferenceEvaluator(case.program.payload)
    names = [port.name for port in case.program.inputs]
    rows = [session.run(None, {n: v.array for n, v in zip(names, feed, strict=True)}) for feed in case.feeds]
    return Values(tuple(tuple(tensor(np.asarray(value)) for value in row) for row in rows))


def branching(chosen: bool) -> Case:
    then = body([node("Exp", "x", "t0"), node("Log", "t0", "t")], {"t": F32})
    other = body([node("Neg", "a", "e0"), node("Abs", "e0", "e")], {"e": F32})
    nodes = [node("Relu", "x", "a"), block("If", ("c",), ("y",), then_branch=then, else_branch=other)]
    return case_of(nodes, {"x": X, "c": full(chosen, "bool")}, {"y": F32})


def looping(op: str = "Mul") -> Case:
    inner = body(
        [node("Identity", "on", "go"), node(op, "s w", "s1"), node("Sqrt", "s1", "s2")],
        {"go": TRUTH, "s2": F32},
        {"i": COUNT, "on": TRUTH, "s": F32},
        {"w": full([1.5, 0.5, 3.0])},
    )
    nodes = [block("Loop", ("m", "c", "x"), ("y",), body=inner)]
    return case_of(nodes, {"x": X}, {"y": F32}, {"m": full(3, "int64"), "c": full(True, "bool")})


def scanning() -> Case:
    square = TensorType("float32", (2, 3))
    inner = body(
        [node("Add", "s r", "s1"), node("Tanh", "s1", "s2"), node("Mul", "s2 r", "row")],
        {"s2": F32, "row": F32},
        {"s": F32, "r": F32},
    )
    nodes = [block("Scan", ("x", "z"), ("y", "rows"), body=inner, num_scan_inputs=1)]
    return case_of(nodes, {"x": X, "z": full([[0.1, 0.2, 0.3], [0.5, -1.0, 2.0]])}, {"y": F32, "rows": square})


def nested() -> Case:
    deep = {
        name: body([node(op, "s x", f"{name}_out")], {f"{name}_out": F32}) for name, op in (("t", "Add"), ("e", "Div"))
    }
    inner = body(
        [
            node("Identity", "on", "go"),
            node("Equal", "i one", "first"),
            block("If", ("first",), ("s1",), then_branch=deep["t"], else_branch=deep["e"]),
            node("Tanh", "s1", "s2"),
        ],
        {"go": TRUTH, "s2": F32},
        {"i": COUNT, "on": TRUTH, "s": F32},
        {"one": full(1, "int64")},
    )
    nodes = [block("Loop", ("m", "c", "x"), ("y",), body=inner), node("Neg", "y", "z")]
    return case_of(nodes, {"x": X}, {"y": F32, "z": F32}, {"m": full(2, "int64"), "c": full(True, "bool")})


CASES = {
    "then": branching(True), "else": branching(False), "loop": looping(), "scan": scanning(), "nested": nested(),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_silent_noise_changes_nothing_and_the_twin_is_valid(name: str) -> None:
    case = CASES[name]
    twin = noisy(case, 0)
    check(read(twin.program.payload))
    plain, noise = evaluate(case), evaluate(twin)
    for want, got in zip(plain.results[0], noise.results[0], strict=True):
        assert want is not None
        assert got is not None
        assert want.same(got)


@pytest.mark.parametrize("name", CASES)
def test_noise_has_the_shape_of_the_value_in_the_body(name: str) -> None:
    twin = noisy(CASES[name], 0)
    noises = [port for port in twin.program.inputs if port.name.startswith("miscompile_")]
    assert all(port.shape in ((3,), (2, 3)) for port in noises), noises
    inside = {
        name for made in read(twin.program.payload).graph.nodes for inner in made.subgraphs() for name in names(inner)
    }
    assert len(inside) >= 3


def names(graph: Graph) -> set[str]:
    found = {
        name
        for each in graph.nodes
        for name in each.inputs
        if name.startswith(("miscompile_noise_", "miscompile_error_"))
    }
    return found.union(*(names(inner) for each in graph.nodes for inner in each.subgraphs()))


def test_what_a_body_rounds_moves_its_result() -> None:
    """The sum in the body cancels: noise on the result alone would not show how far that can move."""
    values = full([1.0, 1.0, 1.0])
    then = body([node("Sub", "x w", "d"), node("Mul", "d k", "t")], {"t": F32}, {}, {"k": full([1e6, 1e6, 1e6])})
    other = body([node("Neg", "x", "e")], {"e": F32})
    nodes = [block("If", ("c",), ("y",), then_branch=then, else_branch=other)]
    constants = {"w": full([1.000001, 1.000001, 1.000001])}
    case = case_of(nodes, {"x": values, "c": full(True, "bool")}, {"y": F32}, constants)
    reference, noise = evaluate(case), evaluate(noisy(case, 0))
    assert reference.results[0][0] is not None
    other_result = Values(((Tensor("float32", reference.results[0][0].array * np.float32(1.2)),),))
    found = judge_noise(reference, other_result, noise)
    assert found is not None
    assert found.ratio <= THRESHOLD


@pytest.mark.parametrize("name", CASES)
def test_a_wrong_result_of_a_body_lies_far_outside(name: str) -> None:
    case = CASES[name]
    reference, noise = evaluate(case), evaluate(noisy(case, 0))
    wrong = tuple(None if x is None else Tensor("float32", x.array * np.float32(1.001)) for x in reference.results[0])
    found = judge_noise(reference, Values((wrong,)), noise)
    assert found is not None
    assert found.ratio > THRESHOLD


def test_a_result_that_a_body_captures_keeps_its_place_in_the_order() -> None:
    then = body([node("Add", "y y", "t")], {"t": F32})
    other = body([node("Neg", "y", "e")], {"e": F32})
    nodes = [node("Relu", "x", "y"), block("If", ("c",), ("z",), then_branch=then, else_branch=other)]
    case = case_of(nodes, {"x": X, "c": full(True, "bool")}, {"y": F32, "z": F32})
    twin = noisy(case, 0)
    check(read(twin.program.payload))
    assert [port.name for port in twin.program.outputs] == ["y", "z"]
    assert evaluate(twin).results[0][1] is not None


def test_bodies_of_other_operators_are_refused_because_they_would_go_without_noise() -> None:
    inner = body([node("Neg", "a", "b")], {"b": F32}, {"a": F32})
    nodes = [
        node("SequenceConstruct", "x", "s"),
        block("SequenceMap", ("s",), ("m",), body=inner),
        node("SequenceAt", "m zero", "y"),
    ]
    case = case_of(nodes, {"x": X}, {"y": F32}, {"zero": full(0, "int64")})
    with pytest.raises(ModelError, match="bodies"):
        noisy(case, 0)


@pytest.mark.parametrize(("right", "moves"), [(1.0002, True), (1.0, True), (1.1, False), (-1.0002, False)])
def test_numbers_that_a_narrower_type_cannot_tell_apart_may_be_equal(right: float, moves: bool) -> None:
    inputs = {"x": full([1.0]), "z": full([right])}
    case = case_of([node("Equal", "x z", "y")], inputs, {"y": TensorType("bool", (1,))})
    found = evaluate(noisy(case, 1, {"float32": "float16"}))
    silent, *noised = (bool(row[0].array[0]) for row in found.results if row[0] is not None)
    assert silent == (right == 1.0)
    assert ((not silent) in noised) == moves
    exact = {bool(row[0].array[0]) for row in evaluate(noisy(case, 1)).results[1:] if row[0] is not None}
    assert exact == ({True, False} if silent else {False})
