import random
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pytest
from virtual_compiler import (
    FLOAT,
    Missing,
    VirtualCompiler,
    case_of,
    crash_if,
    exactly,
    feed_of,
    fuses,
    large_model,
    on,
    pair,
    wrong_if_fused,
)

from miscompile.core.case import Case
from miscompile.core.outcome import Raised
from miscompile.core.ports import Oracle
from miscompile.core.run import Build
from miscompile.core.tensor import Array, tensor
from miscompile.graph.attributes import attributes
from miscompile.graph.check import check
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.read import read
from miscompile.triage.bisect import only
from miscompile.triage.reduce.cost import cost_of
from miscompile.triage.reduce.draft import Draft, take_apart
from miscompile.triage.reduce.engine import Budget, Reduced, any_case, reduce_case
from miscompile.triage.reduce.graphs import GraphDrafts
from miscompile.triage.reduce.reduction import Reduction

FUSED = (Node("MatMul", ("x", "w"), ("m",)), Node("Add", ("m", "b"), ("a",)))


def reduce(
    case: Case,
    compiler: VirtualCompiler,
    *,
    oracle: Oracle | None = None,
    budget: Budget | None = None,
    reductions: Sequence[Reduction[Draft]] | None = None,
    admits: Callable[[Case], bool] = any_case,
) -> Reduced:
    found = reduce_case(
        case, oracle or pair(), compiler, random.Random(1), GraphDrafts(compiler, exactly),
        budget=budget, reductions=reductions, admits=admits,
    )  # fmt: skip
    assert found is not None
    return found


def operators(case: Case) -> list[str]:
    return [node.op for node in read(case.program.payload).graph.nodes]


@pytest.mark.parametrize("seed", range(5))
def test_a_planted_fusion_is_found_in_forty_nodes(seed: int) -> None:
    compiler = VirtualCompiler([wrong_if_fused("MatMul", "Add", "Pass07")])
    found = reduce(case_of(large_model(seed, planted=FUSED), feed_of(seed), feed_of(seed + 100)), compiler)
    model = read(found.case.program.payload)
    assert operators(found.case) == ["MatMul", "Add"]
    assert len(model.graph.outputs) == 1
    assert len(found.case.feeds) == 1
    assert sum(value.array.size for feed in found.case.feeds for value in feed) <= 3
    assert not model.graph.inputs, "constants are simpler than inputs where the bug does not care"
    assert found.complete
    assert found.defined
    assert found.evidence.kind == "wrong"
    check(model)
    assert found.tries < 100, "forty nodes must not cost more"


def test_a_crash_of_one_build_is_reduced_to_its_operator() -> None:
    compiler = VirtualCompiler([crash_if("Softmax", 11)])
    planted = (Node("Softmax", ("x",), ("s",), attributes({"axis": 0})),)
    found = reduce(case_of(large_model(3, planted=planted), feed_of(3)), compiler)
    assert operators(found.case) == ["Softmax"]
    assert read(found.case.program.payload).graph.nodes[0].attributes == {}
    assert found.evidence.kind == "death"


def test_a_crash_of_both_builds_is_reduced_with_what_can_be_captured_before_it() -> None:
    def bug(model: Model, build: Build) -> Raised | None:
        bad = fuses(model, "MatMul", "Add")
        return None if bad is None else Raised("compile", "Fail", f"Node ({model.graph.nodes[bad].name}) is odd")

    compiler = VirtualCompiler([bug])
    found = reduce(case_of(large_model(4, planted=FUSED), feed_of(4)), compiler)
    assert operators(found.case) == ["MatMul", "Add"]
    assert found.evidence.reference is None


def test_missing_outputs_are_reduced() -> None:
    def bug(model: Model, build: Build) -> Missing | None:
        return Missing() if fuses(model, "MatMul", "Add") is not None and build.level == "full" else None

    found = reduce(case_of(large_model(5, planted=FUSED), feed_of(5)), VirtualCompiler([bug]))
    assert operators(found.case) == ["MatMul", "Add"]
    assert found.evidence.kind == "missing"


def test_right_values_stay_finite() -> None:
    compiler = VirtualCompiler([wrong_if_fused("Div", "Mul", "Pass07")])
    nodes = (Node("Div", ("x", "w"), ("d",)), Node("Mul", ("d", "b"), ("y",)))
    kind = TensorType("float32", (2,))
    graph = Graph("g", tuple(ValueInfo(name, kind) for name in "xwb"), (ValueInfo("y", kind),), nodes)
    feed = {name: np.array([1.5, 2.5], np.float32) for name in "xwb"}
    found = reduce(case_of(Model(graph, {"": 18}), feed), compiler)
    constants = read(found.case.program.payload).graph.initializers
    assert operators(found.case) == ["Div", "Mul"]
    values = [value.array for value in (*constants.values(), *(one for row in found.case.feeds for one in row))]
    assert any((value != 0).all() for value in values), "nobody divides by zero"


def test_an_output_without_an_inferred_rank_gets_that_of_its_values() -> None:
    compiler = VirtualCompiler([crash_if("Softmax", 11)])
    kind = TensorType("float32", (3, 4))
    nodes = (Node("Reshape", ("x", "s"), ("r",)), Node("Softmax", ("r",), ("p",)), Node("Neg", ("p",), ("y",)))
    inputs = (ValueInfo("x", kind), ValueInfo("s", TensorType("int64", ("n",))))
    model = Model(Graph("g", inputs, (ValueInfo("y", kind),), nodes), {"": 18})
    feed: dict[str, Array] = {"x": np.ones((3, 4), np.float32), "s": np.array([3, 4], np.int64)}
    assert operators(reduce(case_of(model, feed), compiler).case) == ["Softmax"]


def test_an_attribute_that_matters_stays() -> None:
    def bug(model: Model, build: Build) -> Raised | None:
        axes = [node.attributes["axis"].value for node in model.graph.nodes if "axis" in node.attributes]
        return Raised("compile", "Fail", "axis") if 0 in axes and build.level == "full" else None

    planted = (Node("Softmax", ("x",), ("s",), attributes({"axis": 0})),)
    found = reduce(case_of(large_model(6, planted=planted), feed_of(6)), VirtualCompiler([bug]))
    node = read(found.case.program.payload).graph.nodes[0]
    assert node.op == "Softmax"
    assert node.attributes["axis"].value == 0


def test_another_bug_met_on_the_way_is_a_slippage_and_never_the_result() -> None:
    """The crash hides the wrong result in full; without its operator the wrong result shows."""
    compiler = VirtualCompiler([crash_if("Softmax", 11), wrong_if_fused("MatMul", "Add")])
    planted = (*FUSED, Node("Softmax", ("a",), ("s",)))
    found = reduce(case_of(large_model(7, planted=planted), feed_of(7)), compiler)
    assert found.evidence.kind == "death"
    assert [slippage.verdict.evidence.kind for slippage in found.slippages] == ["wrong"]
    again = reduce(found.slippages[0].case, compiler)
    assert operators(again.case) == ["MatMul", "Add"]


def test_the_attribution_is_held_fixed() -> None:
    """Two bugs of one kind: with only the second one's pass on, the reduction cannot slip to the first."""
    compiler = VirtualCompiler([wrong_if_fused("MatMul", "Add", "Pass01"), wrong_if_fused("MatMul", "Sub", "Pass02")])
    planted = (*FUSED, Node("MatMul", ("y", "w"), ("n",)), Node("Sub", ("n", "a"), ("z",)))
    held = only(pair(), ("Pass02",), ("Pass01", "Pass02", "Pass03"), ())
    assert held.faulty.disabled == {"Pass01", "Pass03"}
    found = reduce(case_of(large_model(8, planted=planted), feed_of(8)), compiler, oracle=held)
    assert operators(found.case) == ["MatMul", "Sub"]


def test_undefined_behaviour_is_never_brought_in() -> None:
    """Zeros would be plainer for the divisor, but dividing by zero kills every compiler: no slip, no step."""
    kind = TensorType("int32", (2,))
    nodes = (Node("Div", ("x", "y"), ("q",)), Node("Add", ("q", "x"), ("z",)))
    graph = Graph("g", (ValueInfo("x", kind), ValueInfo("y", kind)), (ValueInfo("z", kind),), nodes)
    case = case_of(Model(graph, {"": 18}), {"x": np.array([7, 9], np.int32), "y": np.array([3, 5], np.int32)})
    found = reduce(case, VirtualCompiler([wrong_if_fused("Div", "Add")]))
    assert operators(found.case) == ["Div", "Add"]
    assert not found.slippages
    draft = take_apart(found.case)
    constants = {**draft.graph.initializers, **draft.feeds[0]}
    assert (constants[draft.graph.nodes[0].inputs[1]].array != 0).all()


def test_a_case_that_is_undefined_itself_is_marked() -> None:
    kind = TensorType("int32", (2,))
    graph = Graph(
        "g", (ValueInfo("x", kind), ValueInfo("y", kind)), (ValueInfo("q", kind),), (Node("Div", ("x", "y"), ("q",)),)
    )
    case = case_of(Model(graph, {"": 18}), {"x": np.array([7, 9], np.int32), "y": np.array([0, 5], np.int32)})
    assert not reduce(case, VirtualCompiler([])).defined


def test_none_for_a_case_without_the_bug() -> None:
    case = case_of(large_model(1), feed_of(1))
    assert (
        reduce_case(case, pair(), VirtualCompiler([]), random.Random(1), GraphDrafts(VirtualCompiler([]), exactly))
        is None
    )


def test_the_search_is_deterministic() -> None:
    def once() -> tuple[str, int, tuple[str, ...]]:
        compiler = VirtualCompiler([wrong_if_fused("MatMul", "Add")])
        found = reduce(case_of(large_model(9, planted=FUSED), feed_of(9)), compiler)
        return found.case.program.digest, found.tries, found.steps

    assert once() == once()


def test_the_budget_is_honoured() -> None:
    case = case_of(large_model(2, planted=FUSED), feed_of(2))
    compiler = VirtualCompiler([wrong_if_fused("MatMul", "Add")])
    few = reduce(case, compiler, budget=Budget(tries=5))
    assert few.tries <= 5
    assert not few.complete
    assert few.evidence.kind == "wrong"
    late = reduce(case, compiler, budget=Budget(expired=lambda: True))
    assert not late.complete


def test_the_engine_refuses_what_is_not_smaller_or_not_valid() -> None:
    class Silly:
        def edits(self, draft: Draft) -> Iterator[Draft]:
            yield draft
            yield draft.with_nodes((*draft.graph.nodes, Node("Identity", ("a",), ("more",))))
            yield draft.with_nodes(draft.graph.nodes[1:])
            yield draft.with_graph(outputs=(ValueInfo("nowhere", FLOAT),))

    compiler = VirtualCompiler([wrong_if_fused("MatMul", "Add")])
    graph = Graph("g", (ValueInfo("x", FLOAT),), (ValueInfo("a", FLOAT),), FUSED, {
        "w": tensor(np.ones((4, 4), np.float32)), "b": tensor(np.ones((3, 4), np.float32))})  # fmt: skip
    case = case_of(Model(graph, {"": 18}), {"x": np.ones((3, 4), np.float32)})
    found = reduce(case, compiler, reductions=[Silly()])
    assert found.steps == ()
    assert found.tries <= 2


def test_the_cost_orders_as_it_says() -> None:
    small = take_apart(case_of(large_model(1, size=8), feed_of(1)))
    large = take_apart(case_of(large_model(1, size=9), feed_of(1)))
    assert cost_of(small)[0] == 8
    assert cost_of(small) < cost_of(large)
    two_feeds = take_apart(case_of(large_model(1, size=8), feed_of(1), feed_of(2)))
    assert cost_of(small) < cost_of(two_feeds)


def test_a_build_without_the_pass_shows_nothing() -> None:
    assert not on(Build("full", frozenset({"Pass01"})), "Pass01")
    assert not on(Build("off"), "Pass01")


def test_a_reduction_keeps_what_its_caller_demands() -> None:
    compiler = VirtualCompiler([crash_if("Softmax", 11)])
    planted = (Node("Softmax", ("x",), ("s",)), Node("Relu", ("s",), ("r",)))
    case = case_of(large_model(3, planted=planted), feed_of(3))
    assert "Relu" in operators(case)
    found = reduce(case, compiler, admits=lambda smaller: "Relu" in operators(smaller))
    assert "Relu" in operators(found.case)
    assert "Softmax" in operators(found.case)
    assert len(operators(found.case)) < len(operators(case))
