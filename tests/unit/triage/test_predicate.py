"""Bug predicates: which programs contain a pattern, which violations are the bug, and what is told apart."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from program_with_branches import BRANCHES

from miscompile.base.errors import StoreError
from miscompile.base.specs import Spec
from miscompile.core.case import Case
from miscompile.core.finding import Finding, Property, Signature
from miscompile.core.outcome import Raised
from miscompile.core.run import Build, Run
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Evidence
from miscompile.findings.folder import Stored
from miscompile.graph.emit import to_program
from miscompile.graph.model import Function, Model
from miscompile.graph.text.parser import parse_model
from miscompile.triage.outline import outlined
from miscompile.triage.predicate import (
    ANY_OPERAND,
    ANY_SIZE,
    FLOATS,
    BugPredicate,
    NodePattern,
    ValuePattern,
    described,
    predicate_from,
    told_apart,
    underlies,
    widened,
)

DIV_MUL = BugPredicate(
    "onnxruntime", "shape", "", "", ("DivMulFusion",), "",
    (NodePattern("Div", ("one", "x"), ("a",)), NodePattern("Mul", ("a", "y"), ("b",))),
    {"one": ValuePattern(FLOATS, 0, constant=True, elements=(1.0,))},
)  # fmt: skip

PROGRAM = """ir 10
opset 18

graph g(%p: float32[2,3], %q: float32[2,3]) -> (%r: float32[2,3]) {
  init %one: float32[] = [1.0]
  %n = Neg(%p)
  %d = Div(%one, %n)
  %m = Mul(%q, %d)
  %r = Relu(%m)
}
"""


def model(text: str = PROGRAM) -> Model:
    return parse_model(text)


def matches(predicate: BugPredicate, text: str = PROGRAM) -> bool:
    return predicate.matches(described(model(text)))


def test_a_pattern_is_found_inside_a_program_with_operands_of_commutative_operators_in_any_order() -> None:
    assert matches(DIV_MUL)
    assert not matches(DIV_MUL, PROGRAM.replace("Div(%one, %n)", "Div(%n, %one)"))
    assert not matches(DIV_MUL, PROGRAM.replace("Mul(%q, %d)", "Add(%q, %d)"))
    assert not matches(DIV_MUL, PROGRAM.replace("Mul(%q, %d)", "Mul(%q, %n)"))  # no edge between the two


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (ValuePattern(constant=True, elements=(2.0,)), False),
        (ValuePattern(constant=False), False),
        (ValuePattern(dtype="float32"), True),
        (ValuePattern(dtype="float16"), False),
        (ValuePattern(rank=1), False),
    ],
)
def test_conditions_on_a_constant(condition: ValuePattern, holds: bool) -> None:
    assert matches(replace(DIV_MUL, values={"one": condition})) is holds


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (ValuePattern(shape=(2, 3)), True),
        (ValuePattern(shape=(ANY_SIZE, 3)), True),
        (ValuePattern(shape=(2, 2)), False),
        (ValuePattern(rank=2, constant=False), True),
        (ValuePattern(dtype="int64"), False),
        (ValuePattern(dtype=FLOATS), True),
    ],
)
def test_conditions_on_a_computed_value(condition: ValuePattern, holds: bool) -> None:
    assert matches(replace(DIV_MUL, values={"y": condition, "x": condition})) is holds


def test_a_value_that_the_compiler_can_compute_counts_as_constant() -> None:
    folded = PROGRAM.replace("  %n = Neg(%p)\n", "  %n = Neg(%p)\n  %o = Neg(%one)\n").replace("Div(%one", "Div(%o")
    assert not matches(replace(DIV_MUL, values={"one": ValuePattern(constant=False)}), folded)
    assert matches(replace(DIV_MUL, values={"one": ValuePattern(constant=True)}), folded)


def test_attributes_domains_and_operands_that_are_left_out() -> None:
    text = """ir 10
opset 18

graph g(%p: float32[2,3]) -> (%r: float32[3,2]) {
  init %high: float32[] = [1.0]
  %c = Clip(%p, _, %high)
  %r = Transpose(%c) {perm=[1, 0]}
}
"""
    clip = NodePattern("Clip", ("x", "", "h"), ("a",))
    turn = NodePattern("Transpose", ("a",), ("b",), {"perm": [1, 0]})
    base = replace(DIV_MUL, values={}, nodes=(clip, turn))
    assert matches(base, text)
    assert matches(replace(base, nodes=(replace(clip, inputs=("x", ANY_OPERAND)), turn)), text)
    assert not matches(replace(base, nodes=(replace(clip, inputs=("x", "low")), turn)), text)
    assert not matches(replace(base, nodes=(clip, replace(turn, attributes={"perm": [0, 1]}))), text)
    assert not matches(replace(base, nodes=(replace(clip, domain="com.example"), turn)), text)


def test_patterns_are_found_inside_bodies_and_bodies_are_conditions() -> None:
    text = BRANCHES
    assert matches(DIV_MUL, text)
    branch = NodePattern("If", ("c",), ("r",), bodies=("Div", "Neg"))
    assert matches(replace(DIV_MUL, nodes=(branch,), values={}), text)
    assert not matches(replace(DIV_MUL, nodes=(replace(branch, bodies=("Neg", "Neg")),), values={}), text)


def test_json_and_back() -> None:
    rich = replace(
        DIV_MUL,
        nodes=(*DIV_MUL.nodes, NodePattern("If", ("c",), ("r",), {"axis": 1, "perm": [0]}, "d", ("Add",))),
        values={"one": ValuePattern("float32", 2, (1, ANY_SIZE), True, (1.0, 2.0))},
    )
    assert predicate_from(json.loads(json.dumps(rich.as_json()))) == rich


@given(st.dictionaries(st.sampled_from(["target", "nodes", "values", "kind", "passes"]), st.integers() | st.text()))
def test_damaged_data_is_one_clear_error(data: dict[str, Any]) -> None:
    with pytest.raises(StoreError, match="bug predicate"):
        predicate_from({**DIV_MUL.as_json(), "nodes": 5, **data})


def evidence(build: Build, kind: Any = "shape", target: str = "onnxruntime") -> Evidence:
    case = Case(to_program(model()), ())
    return Evidence(kind, "declared", "m", Run(case, target, build), Run(case, target, Build("off")), "r")


def test_a_violation_may_be_the_bug_if_symptom_and_build_agree() -> None:
    assert DIV_MUL.explains(evidence(Build("full")), None)
    assert not DIV_MUL.explains(evidence(Build("full", frozenset({"DivMulFusion"}))), None)
    assert not DIV_MUL.explains(evidence(Build("full", transform=Spec("again"))), None)
    assert not DIV_MUL.explains(evidence(Build("full"), "wrong"), None)
    assert not DIV_MUL.explains(evidence(Build("full"), target="toy"), None)
    raised = replace(DIV_MUL, kind="exception", stage="compile", message="Fail: no kernel #")
    assert raised.explains(evidence(Build("full"), "exception"), Raised("compile", "Fail", "no kernel 7"))
    assert not raised.explains(evidence(Build("full"), "exception"), Raised("run", "Fail", "no kernel 7"))


def test_a_bug_that_no_default_build_shows_explains_no_violation_of_one() -> None:
    switched = replace(DIV_MUL, by_default=False)
    assert predicate_from(switched.as_json()) == switched
    assert not switched.explains(evidence(Build("full")), None)
    assert switched.explains(evidence(Build("full", frozenset({"Other"}))), None)


def test_a_predicate_is_widened_to_the_program_that_showed_the_bug() -> None:
    narrow = replace(
        DIV_MUL, values={"one": ValuePattern("float16", 0, constant=True, elements=(1.0,)), "y": ValuePattern(rank=2)}
    )
    assert not matches(narrow)
    wide = widened(narrow, described(model()))
    assert matches(wide)
    assert wide.values == {
        "one": ValuePattern(None, 0, constant=True, elements=(1.0,)), "y": ValuePattern(rank=2)
    }  # fmt: skip
    other = described(model(PROGRAM.replace("Mul(%q, %d)", "Add(%q, %d)")))
    assert widened(narrow, other) == narrow


def test_attributes_that_the_original_program_has_otherwise_are_no_conditions() -> None:
    narrow = replace(DIV_MUL, nodes=(replace(DIV_MUL.nodes[0], attributes={"axis": 1}), DIV_MUL.nodes[1]))
    assert not matches(narrow)
    assert widened(narrow, described(model())) == DIV_MUL


def test_one_value_of_the_reduced_program_may_be_two_values_of_the_original() -> None:
    square = replace(DIV_MUL, nodes=(DIV_MUL.nodes[0], NodePattern("Mul", ("a", "a"), ("b",))))
    assert not matches(square)
    wide = widened(square, described(model()))
    assert wide.nodes == (DIV_MUL.nodes[0], NodePattern("Mul", ("a", "a#2"), ("b",)))
    assert wide.values == DIV_MUL.values
    assert matches(wide)
    assert not matches(wide, PROGRAM.replace("Mul(%q, %d)", "Mul(%q, %n)"))  # the first use stays


def test_the_only_node_of_a_pattern_keeps_its_wiring() -> None:
    lonely = replace(DIV_MUL, nodes=(NodePattern("Div", ("x", "x"), ("a",)),), values={})
    assert widened(lonely, described(model())) == lonely


def test_a_pattern_is_found_inside_a_function() -> None:
    called = PROGRAM.replace("  %n = Neg(%p)\n", "").replace("  %d = Div(%one, %n)\n", "  %d = local::F(%p)\n")
    alone = replace(DIV_MUL, nodes=DIV_MUL.nodes[:1], values={})
    assert not matches(alone, called)
    inner = tuple(node for node in model().graph.nodes if node.op == "Div")
    whole = replace(model(called), functions=(Function("local", "F", ("n",), ("d",), inner, {"": 18}),))
    assert alone.matches(described(whole))
    assert alone.matches(outlined(to_program(whole).payload))


def finding(predicate: BugPredicate, culprits: tuple[str, ...] = ("DivMulFusion",)) -> Stored:
    case = Case(to_program(model()), ((tensor(np.zeros((2, 3), np.float32)),) * 2,))
    held = Property("optimisation", "onnxruntime", Signature("onnxruntime", "shape", "", culprits, ""))
    return Stored(Finding("shape-1", held, case, "m", {"predicate": predicate.as_json()}), "confirmed", None, {})


def test_two_bugs_of_the_same_passes_are_told_apart_by_their_operators() -> None:
    other = replace(DIV_MUL, nodes=(NodePattern("Sqrt", ("x",), ("a",)), NodePattern("Mul", ("a", "y"), ("b",))))
    apart = told_apart(finding(other), finding(DIV_MUL))
    assert apart is not None
    assert str(apart) == "onnxruntime:shape:DivMulFusion in Mul>Sqrt"
    wider = replace(DIV_MUL, nodes=(*DIV_MUL.nodes, NodePattern("Relu", ("b",), ("c",))))
    assert told_apart(finding(wider), finding(DIV_MUL)) is None
    assert told_apart(finding(DIV_MUL), finding(wider)) is None
    assert told_apart(finding(other, ()), finding(DIV_MUL, ())) is None  # without culprits the text tells them apart
    sums = replace(DIV_MUL, nodes=(NodePattern("ReduceSum", ("x",), ("a",)),))
    means = replace(DIV_MUL, nodes=(NodePattern("ReduceMean", ("x",), ("a",)), NodePattern("Cast", ("a",), ("b",))))
    assert told_apart(finding(sums), finding(means)) is None
    held = replace(finding(other).finding.property, signature=finding(other).finding.property.signature.switched())
    switched = replace(finding(other), finding=replace(finding(other).finding, property=held))
    apart = told_apart(switched, finding(DIV_MUL))
    assert apart is not None
    assert apart.is_switched


def test_a_bug_that_nobody_has_reported_is_told_apart_from_a_known_one_of_the_same_passes() -> None:
    found = finding(DIV_MUL)
    listed = replace(found, finding=replace(found.finding, facts={**found.finding.facts, "known": {"link": "l"}}))
    assert str(told_apart(found, listed)) == "onnxruntime:shape:DivMulFusion in Div>Mul"
    assert str(told_apart(listed, found)) == "onnxruntime:shape:DivMulFusion in Div>Mul"
    assert told_apart(listed, listed) is None


def test_a_failure_of_later_passes_follows_from_the_bug_whose_pattern_its_program_contains() -> None:
    known = finding(DIV_MUL)
    refused = replace(
        DIV_MUL, kind="exception", stage="compile", message="m", passes=("DivMulFusion", "EliminateIdentity"),
        nodes=(NodePattern("Neg", ("p",), ("x",)), *DIV_MUL.nodes),
    )  # fmt: skip
    both = ("DivMulFusion", "EliminateIdentity")
    assert underlies(known, finding(refused, both))
    assert not underlies(finding(refused, both), known)
    assert not underlies(known, finding(refused, ("DivMulFusion",))), "the same passes: its signature decides"
    assert not underlies(known, finding(refused, ("ConstantFolding", "EliminateIdentity")))
    assert not underlies(known, finding(replace(refused, transform="again"), both))
    wide = replace(DIV_MUL, values={"one": ValuePattern(FLOATS, 3, constant=True, elements=(1.0,))})
    assert underlies(finding(wide), finding(refused, both)), "ranks differ between the pass and those that follow"
    other = replace(DIV_MUL, values={"one": ValuePattern(FLOATS, 0, constant=True, elements=(2.0,))})
    assert not underlies(finding(other), finding(refused, both))
    assert not underlies(finding(DIV_MUL, ()), finding(refused, both))
