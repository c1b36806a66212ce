"""Reduction of programs that are invalid on purpose: small, and still invalid by the rule that the finding names."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from virtual_compiler import FLOAT, case_of, fuses, interpret

from miscompile.base.errors import ModelError
from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.core.outcome import Crashed, Outcome, Raised, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Array, tensor
from miscompile.core.verdict import Evidence
from miscompile.graph.attributes import attributes
from miscompile.graph.emit import emit
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.read import read
from miscompile.ops.support import Support
from miscompile.oracles.disruptive import Disruptive
from miscompile.oracles.pair import BuildPair
from miscompile.producers.disruptive.checker import refusal_of, result_types
from miscompile.producers.disruptive.producer import DisruptiveOptions, DisruptiveProducer
from miscompile.triage.reduce.draft import Draft
from miscompile.triage.reduce.engine import Reduced, reduce_case
from miscompile.triage.reduce.invalid import InvalidDrafts

HELD = BuildPair("toy", Build("off"), Build("full"), judged_by=Disruptive("toy"))
OPS = ("Add", "MatMul", "Conv", "Transpose", "Gather", "Reshape", "Softmax", "Where", "Concat")
MATRIX = TensorType("float32", (None, None))

Verdict = Callable[[Model], Outcome | None]


@dataclass
class LenientCompiler:
    """A runner that gives values for every program, valid or not, unless `verdict` has another outcome."""

    verdict: Verdict = lambda _: None
    payloads: list[bytes] = field(default_factory=list)

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        return [self._outcome(run) for run in runs]

    def _outcome(self, run: Run) -> Outcome:
        if run.purpose == "reduce":  # a capture
            return Values(
                tuple(
                    interpret(read(run.case.program.payload), run.case.program, feed, None) for feed in run.case.feeds
                )
            )
        self.payloads.append(run.case.program.payload)
        zero = tensor(np.zeros(1, np.float32))
        values = Values(tuple(tuple(zero for _ in run.case.program.outputs) for _ in run.case.feeds))
        return self.verdict(read(run.case.program.payload)) or values


def recipe(op: str, kind: str, place: str, counts: str = "acceptance", proof: str = "checker") -> dict[str, Any]:
    broken = {"kind": kind, "place": place, "detail": "the old detail", "refusal": "the old refusal"}
    return {"oracle": "disruptive", "op": op, "broken": broken, "proof": proof, "counts": counts}


def ten_nodes() -> Case:
    """Return a graph of ten nodes, of which the sixth adds [3, 4] to [2, 4]."""
    nodes = (
        Node("Relu", ("x",), ("a",), name="one"),
        Node("Neg", ("a",), ("b",), name="two"),
        Node("Add", ("b", "x"), ("c",), name="three"),
        Node("Abs", ("y",), ("d",), name="four"),
        Node("Neg", ("d",), ("e",), name="five"),
        Node("Add", ("c", "e"), ("f",), name="broken"),
        Node("Relu", ("f",), ("g",), name="seven"),
        Node("Neg", ("g",), ("h",), name="eight"),
        Node("Abs", ("h",), ("i",), name="nine"),
        Node("Neg", ("i",), ("j",), name="ten"),
    )
    inputs = (ValueInfo("x", FLOAT), ValueInfo("y", TensorType("float32", (2, 4))))
    model = Model(Graph("ten", inputs, (ValueInfo("j", MATRIX),), nodes), {"": 18})
    feed = {"x": np.full((3, 4), 7.5, np.float32), "y": np.full((2, 4), -2.5, np.float32)}
    return replace(case_of(model, feed), recipe=recipe("Add", "shape", "operand 1"))


def one_node(
    op: str,
    feed: Mapping[str, Array],
    said: dict[str, Any],
    outputs: int = 1,
    hide: bool = False,
    **given: Any,
) -> Case:
    values = {name: tensor(array) for name, array in feed.items()}
    inputs = tuple(
        ValueInfo(name, TensorType(value.dtype, (None,) * len(value.shape) if hide else value.shape))
        for name, value in values.items()
    )
    made = tuple(f"y{place}" for place in range(outputs))
    node = Node(op, tuple(feed), made, attributes(given))
    model = Model(Graph("g", inputs, tuple(ValueInfo(name, MATRIX) for name in made), (node,)), {"": 18})
    return replace(case_of(model, dict(feed)), recipe=said)


def reduce(case: Case, compiler: LenientCompiler) -> Reduced:
    found = reduce_case(case, HELD, compiler, random.Random(1), InvalidDrafts(compiler, refusal_of, result_types))
    assert found is not None
    return found


def model_of(found: Reduced) -> Model:
    return read(found.case.program.payload)


def taken_apart(case: Case) -> tuple[InvalidDrafts, Draft]:
    compiler = LenientCompiler()
    kind = InvalidDrafts(compiler, refusal_of, result_types)
    return kind, kind.take_apart(case, Evidence("accepted", "invalid", "", Run(case, "toy", Build("full"))))


def shapes(found: Reduced) -> list[tuple[int, ...]]:
    graph = model_of(found).graph
    known = dict(graph.initializers)
    known |= {info.name: value for info, value in zip(graph.inputs, found.case.feeds[0], strict=True)}
    (node,) = graph.nodes
    return [known[name].shape for name in node.inputs]


def test_ten_nodes_come_down_to_the_broken_one() -> None:
    compiler = LenientCompiler()
    found = reduce(ten_nodes(), compiler)
    assert [node.op for node in model_of(found).graph.nodes] == ["Add"]
    first, second = shapes(found)
    assert sorted(map(max, (first, second))) == [2, 3]
    assert found.evidence.kind == "accepted"
    assert found.complete
    assert all(refusal_of(payload) for payload in compiler.payloads), "a valid program was run"


def test_the_recipe_and_the_message_describe_the_reduced_program() -> None:
    found = reduce(ten_nodes(), LenientCompiler())
    first, second = shapes(found)
    broken = found.case.recipe["broken"]
    sizes = [str(list(shape)) for shape in (first, second)]
    assert broken["detail"] == (f"operand B has shape {sizes[1]} in the call Add(float32{sizes[0]}, float32{sizes[1]})")
    assert broken["detail"] in found.evidence.message
    assert "Incompatible dimensions" in broken["refusal"]
    assert found.evidence.details["refusal"] == broken["refusal"]
    assert (broken["kind"], broken["place"], found.case.recipe["proof"]) == ("shape", "operand 1", "checker")


def test_nodes_that_the_crash_needs_stay() -> None:
    """The compiler dies where a Neg reads a Relu that reads the broken Add."""

    def dies(model: Model) -> Outcome | None:
        made = {name: node for node in model.graph.nodes for name in node.outputs}
        before = [made.get(node.inputs[0]) for node in model.graph.nodes if node.op == "Neg"]
        relus = [node for node in before if node is not None and node.op == "Relu"]
        struck = any(name in made and made[name].op == "Add" for node in relus for name in node.inputs)
        return Crashed("compile", 11) if struck else Raised("compile", "Fail", "no")

    case = ten_nodes()
    found = reduce(replace(case, recipe={**case.recipe, "counts": "deaths"}), LenientCompiler(dies))
    assert [node.op for node in model_of(found).graph.nodes] == ["Add", "Relu", "Neg"]
    assert found.evidence.kind == "death"
    assert refusal_of(found.case.program.payload)


def test_nodes_before_stay_where_the_crash_needs_them() -> None:
    def dies(model: Model) -> Outcome | None:
        return Crashed("compile", 11) if fuses(model, "Neg", "Add") is not None else Raised("compile", "Fail", "no")

    found = reduce(ten_nodes(), LenientCompiler(dies))
    assert sorted(node.op for node in model_of(found).graph.nodes) == ["Add", "Neg"]
    assert refusal_of(found.case.program.payload)


def test_a_draft_that_has_become_valid_is_refused() -> None:
    case = ten_nodes()
    kind, draft = taken_apart(case)
    y = ValueInfo("y", FLOAT)
    fixed = replace(
        draft.with_graph(inputs=(draft.graph.inputs[0], y)),
        feeds=({**draft.feeds[0], "y": draft.feeds[0]["x"]},),
    )
    assert refusal_of(case_of(fixed.model, {name: v.array for name, v in fixed.feeds[0].items()}).program.payload) == ""
    with pytest.raises(ModelError, match="no Add breaks the rule"):
        kind.put_together(kind.tidy(fixed), case.recipe)


def test_a_draft_that_breaks_another_rule_is_refused() -> None:
    case = one_node(
        "Add", {"a": np.ones((2, 3), np.float32), "b": np.ones((2, 4), np.float32)}, recipe("Add", "shape", "operand 1")
    )
    kind, draft = taken_apart(case)
    kind.put_together(kind.tidy(draft), case.recipe)
    for dtype in ("int32", "string"):
        b = tensor(np.ones((2, 4), np.int32)) if dtype == "int32" else tensor(np.full((2, 4), "x", object))
        inputs = (draft.graph.inputs[0], ValueInfo("b", TensorType(b.dtype, b.shape)))
        other = replace(draft.with_graph(inputs=inputs), feeds=({**draft.feeds[0], "b": b},))
        with pytest.raises(ModelError, match="another rule is broken"):
            kind.put_together(kind.tidy(other), case.recipe)


def test_a_second_broken_rule_behind_the_same_error_is_refused() -> None:
    """Gemm takes matrices. With its first operand of rank 3, the checker says no word about the rank of the second."""
    feed = {"a": np.ones((1, 2, 3), np.float32), "b": np.ones((3, 4), np.float32)}
    case = one_node("Gemm", feed, recipe("Gemm", "rank", "operand 0"))
    kind, draft = taken_apart(case)
    flat = tensor(np.ones((3,), np.float32))
    other = replace(
        draft.with_graph(inputs=(draft.graph.inputs[0], ValueInfo("b", TensorType("float32", (3,))))),
        feeds=({**draft.feeds[0], "b": flat},),
    )
    payload = case_of(other.model, {name: v.array for name, v in other.feeds[0].items()}).program.payload
    assert refusal_of(payload) == refusal_of(case.program.payload), "the checker cannot tell them apart"
    with pytest.raises(ModelError, match="one more"):
        kind.put_together(kind.tidy(other), case.recipe)
    found = reduce(case, LenientCompiler())
    assert [len(shape) for shape in shapes(found)][1] == 2


def test_mixed_types_do_not_become_types_that_the_operator_does_not_take() -> None:
    """The checker refuses a zero point of another type than its operand's, whether it takes that type or not."""
    byte, scale = np.zeros((2, 2), np.int8), np.ones((), np.float32)
    zero = np.zeros((), np.int8)
    names = ("a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "y_scale", "y_zero")
    arrays = (byte.astype(np.uint8), scale, zero, byte, scale, zero, scale, zero)
    said = recipe("QLinearMatMul", "mixed", "operand 0")
    case = one_node("QLinearMatMul", dict(zip(names, arrays, strict=True)), said)
    kind, draft = taken_apart(case)
    kind.put_together(kind.tidy(draft), case.recipe)
    a = tensor(np.zeros((2, 2), np.float32))
    inputs = (ValueInfo("a", TensorType("float32", (2, 2))), *draft.graph.inputs[1:])
    other = replace(draft.with_graph(inputs=inputs), feeds=({**draft.feeds[0], "a": a},))
    with pytest.raises(ModelError, match="another rule is broken"):
        kind.put_together(kind.tidy(other), case.recipe)
    found = reduce(case, LenientCompiler())
    assert found.case.recipe["broken"]["detail"].startswith("operand a has type uint8 in the call QLinearMatMul(")


def test_the_rest_of_the_graph_must_stay_valid() -> None:
    case = ten_nodes()
    kind, draft = taken_apart(case)
    nodes = [
        replace(node, attributes=attributes({"alpha": 1.0})) if node.op == "Abs" else node for node in draft.graph.nodes
    ]
    with pytest.raises(ModelError, match="Unrecognized attribute"):
        kind.put_together(draft.with_nodes(nodes), case.recipe)


def test_a_wrong_declaration_stays_as_it_is_declared() -> None:
    case = one_node(
        "Relu", {"x": np.full((3, 4), 2.5, np.float32)}, recipe("Relu", "declared", "result 0", "acceptance")
    )
    wrong = read(case.program.payload)
    outputs = (ValueInfo("y0", TensorType("int32", (None, None))),)
    case = replace(
        case_of(replace(wrong, graph=replace(wrong.graph, outputs=outputs)), {"x": case.feeds[0][0].array}),
        recipe=case.recipe,
    )
    found = reduce(case, LenientCompiler())
    (info,) = model_of(found).graph.outputs
    assert info.type == TensorType("int32", (None, None))
    assert shapes(found) == [(1, 1)]
    assert found.case.recipe["broken"]["detail"].startswith("result 0 is declared as int32")


def test_too_many_results_stay_too_many() -> None:
    case = one_node("Relu", {"x": np.full((3, 4), 2.5, np.float32)}, recipe("Relu", "signature", "results"), outputs=2)
    found = reduce(case, LenientCompiler())
    assert len(model_of(found).graph.nodes[0].outputs) == 2
    assert found.case.recipe["broken"]["detail"].startswith("2 results are asked for in the call Relu(")


def test_an_attribute_out_of_range_stays_out_of_range_in_a_smaller_call() -> None:
    case = one_node(
        "Softmax", {"x": np.full((3, 4, 2), 2.5, np.float32)}, recipe("Softmax", "attribute", "attribute axis"), axis=7
    )
    found = reduce(case, LenientCompiler())
    (node,) = model_of(found).graph.nodes
    ((rank,),) = [[len(shape) for shape in shapes(found)]]
    assert not -rank <= node.attributes["axis"].value < rank
    assert found.case.recipe["broken"]["detail"].startswith(f"attribute axis is {node.attributes['axis'].value}")
    assert rank < 3


def hidden_case() -> Case:
    feed = {"a": np.ones((5, 3), np.float32), "b": np.ones((4, 2), np.float32)}
    said = recipe("MatMul", "shape", "operand 1", "deaths", "runtime")
    return one_node("MatMul", feed, said, hide=True)


def test_hidden_sizes_are_shown_where_the_crash_does_not_need_them_hidden() -> None:
    found = reduce(hidden_case(), LenientCompiler(lambda _: Crashed("run", 11)))
    assert found.case.recipe["proof"] == "checker"
    assert found.case.recipe["counts"] == "deaths"
    assert refusal_of(found.case.program.payload)


def test_hidden_sizes_stay_hidden_where_the_crash_needs_it() -> None:
    def dies(model: Model) -> Outcome | None:
        return Raised("compile", "Fail", "no") if refusal_of(emit(model)) else Crashed("run", 11)

    found = reduce(hidden_case(), LenientCompiler(dies))
    assert refusal_of(found.case.program.payload) == ""
    assert found.case.recipe["proof"] == "runtime"
    assert sorted(shapes(found)) == [(1,), (2,)]


def test_a_finding_that_does_not_name_the_broken_place_is_reduced_all_the_same() -> None:
    case = ten_nodes()
    broken = {key: value for key, value in case.recipe["broken"].items() if key != "place"}
    found = reduce(replace(case, recipe={**case.recipe, "broken": broken}), LenientCompiler())
    assert [node.op for node in model_of(found).graph.nodes] == ["Add"]
    assert found.case.recipe["broken"]["detail"].startswith("a constraint of Add is broken (shape) in the call Add(")


@pytest.mark.parametrize("change", [{"op": ""}, {"op": "Mul"}, {"broken": {}}])
def test_a_recipe_without_a_rule_that_is_broken_is_not_reduced(change: dict[str, Any]) -> None:
    case = ten_nodes()
    case = replace(case, recipe={**case.recipe, **change})
    assert reduce(case, LenientCompiler()).case is case


@pytest.mark.slow
def test_generated_programs_stay_invalid_by_the_same_kind_of_rule() -> None:
    made = DisruptiveProducer(
        DisruptiveOptions(ops=OPS),
        Support(open=True),
        check=refusal_of,
    )
    smaller = tried = 0
    for index in range(60):
        case = made.propose(stream(3, index))
        if case.recipe["counts"] != "acceptance":
            continue
        compiler = LenientCompiler()
        found = reduce(case, compiler)
        assert all(refusal_of(payload) for payload in compiler.payloads), case.recipe
        old, new = case.recipe["broken"], found.case.recipe["broken"]
        assert (old["kind"], old["place"]) == (new["kind"], new["place"])
        tried += 1
        smaller += found.case is not case
    assert tried >= 10
    assert smaller >= 0.9 * tried
