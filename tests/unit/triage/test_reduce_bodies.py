"""Reductions of control flow: what they propose is valid and smaller, and written-out graphs compute the same."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from miscompile.base.errors import ModelError
from miscompile.core.outcome import Outcome, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Array, Tensor, tensor
from miscompile.graph.attributes import PlainValue, attributes
from miscompile.graph.check import check
from miscompile.graph.emit import emit
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.triage.reduce.bodies import BypassDeeper, FewerResults, InnerBranch, OneTurn, PlainerLoops, SameBranch
from miscompile.triage.reduce.capture import ReferenceCapture
from miscompile.triage.reduce.cost import cost_of
from miscompile.triage.reduce.defined import Guard
from miscompile.triage.reduce.draft import Draft, inexact, put_together, tidy
from miscompile.triage.reduce.flattening import flattened, is_block
from miscompile.triage.reduce.reduction import Reduction
from miscompile.triage.reduce.shapes import SmallerSizes
from miscompile.triage.reduce.values import PlainerValues

COUNT, TRUTH, F32 = TensorType("int64", ()), TensorType("bool", ()), TensorType("float32", (2,))
X = tensor(np.array([1.0, 2.0], np.float32))
Z = tensor(np.array([[3.0, 5.0], [7.0, 11.0]], np.float32))


class Evaluating:
    """A runner that has onnx's reference evaluator run every program."""

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        return [self._values(run) for run in runs]

    def _values(self, run: Run) -> Outcome:
        session = ReferenceEvaluator(run.case.program.payload)
        names = [port.name for port in run.case.program.inputs]
        rows = [session.run(None, {n: v.array for n, v in zip(names, feed, strict=True)}) for feed in run.case.feeds]
        return Values(tuple(tuple(tensor(np.asarray(value)) for value in row) for row in rows))


CAPTURE = ReferenceCapture(Evaluating(), "reference", Build("off"))


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


def draft(
    nodes: Sequence[Node], outputs: Mapping[str, TensorType], feed: Mapping[str, Tensor], **constants: Tensor
) -> Draft:
    inputs = {name: TensorType(value.dtype, value.shape) for name, value in feed.items()}
    made = Draft(Model(graph(inputs, outputs, nodes, constants), {"": 18}, ir_version=8), (feed,))
    check(made.model)
    return made


def number(value: int) -> Tensor:
    return Tensor("int64", np.array(value, np.int64))


def truth(value: bool) -> Tensor:
    return Tensor("bool", np.array(value))


def branches(then: str, other: str, value: str, result: str) -> Node:
    bodies = {
        f"{name}_branch": graph({}, {f"{result}_{name}": F32}, [node(op, value, f"{result}_{name}")])
        for name, op in (("then", then), ("else", other))
    }
    return node("If", "c", result, **bodies)


def looping(turns: int = 3) -> Draft:
    """A Loop of two carried values, one read by the other, with a constant of its own and an If within."""
    body = graph(
        {"i": COUNT, "on": TRUTH, "s": F32, "t": F32},
        {"go": TRUTH, "s2": F32, "t3": F32},
        [
            node("Identity", "on", "go"),
            node("Add", "s w", "s1"),
            branches("Neg", "Relu", "s1", "s2"),
            node("Mul", "t s2", "t2"),
            node("Sub", "t2 x", "t3"),
        ],
        {"w": X},
    )
    nodes = [node("Loop", "m yes x x", "y z", body=body), node("Neg", "y", "v")]
    feed = {"x": X, "c": truth(turns % 2 == 0)}
    return draft(nodes, {"v": F32, "z": F32}, feed, m=number(turns), yes=truth(True))


def scanning() -> Draft:
    body = graph(
        {"s": F32, "r": F32},
        {"s2": F32, "row": F32},
        [node("Add", "s r", "s1"), node("Relu", "s1", "s2"), node("Mul", "s2 r", "row")],
    )
    square = TensorType("float32", (2, 2))
    nodes = [node("Scan", "x z", "y rows", body=body, num_scan_inputs=1)]
    return draft(nodes, {"y": F32, "rows": square}, {"x": X, "z": Z})


def computed(made: Draft) -> list[list[Array]]:
    session = ReferenceEvaluator(emit(made.model))
    return [session.run(None, {name: value.array for name, value in feed.items()}) for feed in made.feeds]


def smaller(made: Draft, reduction: Reduction[Draft]) -> list[Draft]:
    """Return what the engine would run: the valid candidates that are smaller, tidied."""
    found = []
    for candidate in reduction.edits(made):
        try:
            small = tidy(candidate)
            check(small.model)
            put_together(small, inexact, {})
        except ModelError:
            continue
        if cost_of(small) < cost_of(tidy(made)):
            found.append(small)
    return found


def every_op(made: Draft | Graph) -> Iterator[str]:
    for each in (made if isinstance(made, Graph) else made.graph).nodes:
        yield each.op
        for body in each.subgraphs():
            yield from every_op(body)


@pytest.mark.parametrize("make", [looping, lambda: looping(2), lambda: looping(1), scanning])
def test_a_graph_written_out_has_no_bodies_and_computes_the_same(make: Callable[[], Draft]) -> None:
    made = make()
    (flat,) = flattened(made, CAPTURE)
    small = tidy(flat)
    check(small.model)
    assert not any(is_block(each) for each in small.graph.nodes)
    for want, got in zip(computed(made)[0], computed(small)[0], strict=True):
        np.testing.assert_array_equal(want, got)


def test_each_feed_is_written_out_by_itself() -> None:
    nodes = [branches("Neg", "Relu", "x", "y")]
    both = draft(nodes, {"y": F32}, {"x": X, "c": truth(True)})
    both = replace(both, feeds=(*both.feeds, {"x": X, "c": truth(False)}))
    assert [list(every_op(flat)) for flat in flattened(both, CAPTURE)] == [["Neg"], ["Relu"]]


def test_a_loop_that_ends_early_is_written_out_as_far_as_it_goes() -> None:
    body = graph(
        {"i": COUNT, "on": TRUTH, "s": F32},
        {"go": TRUTH, "s2": F32},
        [node("Add", "s s", "s2"), node("ReduceMax", "s2", "top", keepdims=0), node("Less", "top k", "go")],
        {"k": tensor(np.array(7, np.float32))},
    )
    made = draft([node("Loop", "m yes x", "y", body=body)], {"y": F32}, {"x": X}, m=number(9), yes=truth(True))
    (flat,) = flattened(made, CAPTURE)
    assert list(every_op(flat)).count("Add") == 2
    np.testing.assert_array_equal(computed(tidy(flat))[0][0], computed(made)[0][0])


def test_what_cannot_be_written_out_is_left_out() -> None:
    assert list(flattened(looping(17), CAPTURE)) == []


def test_one_turn_takes_the_place_of_a_loop() -> None:
    found = smaller(looping(), OneTurn(CAPTURE))
    assert any("Loop" not in every_op(each) and "If" in every_op(each) for each in found)
    once = next(each for each in found if "Loop" not in every_op(each))
    for want, got in zip(computed(looping(1))[0], computed(once)[0], strict=True):
        np.testing.assert_array_equal(want, got)


def test_one_turn_of_a_scan_is_fed_the_first_slices() -> None:
    found = [each for each in smaller(scanning(), OneTurn(CAPTURE)) if "Scan" not in every_op(each)]
    assert found
    state, row = computed(found[0])[0]
    np.testing.assert_array_equal(state, X.array + Z.array[0])
    np.testing.assert_array_equal(row, (X.array + Z.array[0]) * Z.array[0])


def test_a_branch_within_a_body_takes_the_place_of_its_if() -> None:
    found = smaller(looping(), InnerBranch())
    assert [("Neg" in ops, "Relu" in ops) for ops in (list(every_op(each))[:-1] for each in found)] == [
        (True, False),
        (False, True),
    ]


def test_both_branches_become_alike() -> None:
    found = [list(every_op(each)) for each in smaller(looping(), SameBranch())]
    assert any("Relu" not in ops for ops in found)
    assert any(ops.count("Relu") == 2 for ops in found)


def test_constants_of_bodies_are_leaves() -> None:
    kind = TensorType("float32", (2, 3))
    held = {"w": tensor(np.full((2, 3), 0.7, np.float32))}
    then, other = (graph({}, {name: kind}, [node(op, inputs, name)], constants) for name, op, inputs, constants in (
        ("t", "Add", "a w", held), ("e", "Neg", "a", None)
    ))  # fmt: skip
    whole = draft([node("If", "c", "y", then_branch=then, else_branch=other)], {"y": kind},
                  {"a": tensor(np.ones((2, 3), np.float32)), "c": truth(True)})  # fmt: skip
    weights = [
        each.graph.nodes[0].attributes["then_branch"].value.initializers["w"].array.tolist()
        for each in [*smaller(whole, PlainerValues()), *smaller(whole, SmallerSizes())]
    ]
    assert [[0.0] * 3] * 2 in weights
    assert any(np.shape(one) == (1, 3) for one in weights), "with the size of the operand outside"


def test_the_counter_of_a_loop_keeps_its_type() -> None:
    drafts = PlainerValues().edits(looping())
    loops = [one for each in drafts for one in each.graph.nodes if one.op == "Loop"]
    assert loops
    assert all(info.type is not None for one in loops for info in one.attributes["body"].value.inputs[:2])


def test_results_and_carried_values_go_one_at_a_time() -> None:
    found = smaller(looping(), FewerResults())
    loops = [next(each for each in small.graph.nodes if each.op == "Loop") for small in found]
    assert {len(each.outputs) for each in loops} == {1}
    rows = [each for each in smaller(scanning(), FewerResults()) if "Scan" in every_op(each)]
    assert {tuple(info.name for info in each.graph.outputs) for each in rows} >= {("y",), ("rows",)}


def test_loops_become_plainer() -> None:
    found = smaller(looping(), PlainerLoops())
    loops = [next(each for each in small.graph.nodes if each.op == "Loop") for small in found]
    assert any(not each.inputs[1] for each in loops)
    turned = replace(scanning().graph.nodes[0], attributes={
        **scanning().graph.nodes[0].attributes, **attributes({"scan_input_directions": [1], "scan_output_axes": [1]}),
    })  # fmt: skip
    scans = smaller(scanning().with_nodes((turned,)), PlainerLoops())
    assert {len(each.graph.nodes[0].attributes) for each in scans} == {3}


def test_nodes_of_inner_bodies_are_bypassed() -> None:
    assert any(list(every_op(each)).count("Relu") == 0 for each in smaller(looping(), BypassDeeper()))


def dividing(divisor: int) -> Draft:
    """An integer division in a branch, by a value that the branch itself computes."""
    ints = TensorType("int32", (2,))
    a = tensor(np.array([4, 6], np.int32))
    then = graph({}, {"t": ints}, [node("Sub", "b one", "d"), node("Div", "a d", "t")])
    other = graph({}, {"e": ints}, [node("Neg", "a", "e")])
    nodes = [node("If", "c", "y", then_branch=then, else_branch=other)]
    b = tensor(np.array([divisor + 1, divisor + 1], np.int32))
    feed = {"a": a, "b": b, "c": truth(True)}
    return draft(nodes, {"y": ints}, feed, one=tensor(np.array([1, 1], np.int32)))


def test_undefined_behaviour_in_a_body_is_seen() -> None:
    with np.errstate(all="ignore"):
        assert Guard(CAPTURE)(dividing(2))
        assert not Guard(CAPTURE)(dividing(0))
        harmless = dividing(0)
        (feed,) = harmless.feeds
        assert Guard(CAPTURE)(replace(harmless, feeds=({**feed, "c": truth(False)},)))
