"""Which findings seem to have one cause: the same passes and pattern, the same failure, and nothing else."""

import numpy as np
import pytest

from miscompile.core.case import Case
from miscompile.core.finding import Finding, Property, Signature
from miscompile.core.tensor import tensor
from miscompile.core.verdict import FindingKind
from miscompile.findings.folder import FindingStatus, Stored
from miscompile.graph.emit import to_program
from miscompile.graph.text.parser import parse_model
from miscompile.triage.clusters import clusters
from miscompile.triage.predicate import BugPredicate, NodePattern

DIV_MUL = (NodePattern("Div", ("a", "b"), ("c",)), NodePattern("Mul", ("c", "d"), ("e",)))


def found(
    name: str,
    body: str,
    kind: FindingKind,
    culprits: tuple[str, ...] = (),
    text: str = "",
    nodes: tuple[NodePattern, ...] = (),
    message: str = "m",
    status: FindingStatus = "confirmed",
) -> Stored:
    model = parse_model(f"ir 8\nopset 18\ngraph g(%x: float32[2], %y: float32[2]) -> (%z: float32[2]) {{\n{body}\n}}\n")
    case = Case(to_program(model), ((tensor(np.ones(2, np.float32)),) * 2,))
    stage = "compile" if kind in ("exception", "death") else ""
    predicate = BugPredicate("onnxruntime", kind, stage, "", culprits, "", nodes, {})
    facts = {"nodes": len(model.graph.nodes), "predicate": predicate.as_json()}
    held = Property("optimisation", "onnxruntime", Signature("onnxruntime", kind, stage, culprits, text))
    return Stored(Finding(name, held, case, message, facts), status)


FUSED = "  %q = Div(%x, %y)\n  %z = Mul(%q, %y)"


def names(*findings: Stored) -> list[tuple[str, ...]]:
    return sorted(cluster.identifiers for cluster in clusters(findings))


def test_failures_of_one_fusion_are_one_cause_the_smallest_first() -> None:
    deeper = f"{FUSED.replace('%z', '%r')}\n  %z = Relu(%r)"
    assert names(
        found("exception-1", deeper, "exception", ("DivMulFusion", "FuseRelu"), nodes=(*DIV_MUL,)),
        found("wrong-1", FUSED, "wrong", ("DivMulFusion",), nodes=DIV_MUL),
        found("shape-1", deeper, "shape", ("DivMulFusion",), nodes=DIV_MUL),
        found("wrong-2", "  %z = Sqrt(%x)", "wrong", ("DivMulFusion",), nodes=(NodePattern("Sqrt", ("a",), ("b",)),)),
        found("wrong-3", FUSED, "wrong", ("OtherFusion",), nodes=DIV_MUL),
    ) == [("wrong-1", "exception-1", "shape-1")]


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        ("Check failed at axes.cpp:#: ReduceMax cannot", "Check failed at axes.cpp:#: Relu cannot", True),
        ("Check failed at axes.cpp:#: ReduceMax cannot", "Check failed at pads.cpp:#: Relu cannot", False),
        ("ReduceMax has no such axis", "Relu has no such axis", False),  # families differ, and no place in the source
        ("Sin has no such value", "Cos has no such value", True),
    ],
)
def test_errors_are_held_together_by_their_place_or_family(one: str, other: str, together: bool) -> None:
    operators = [text.split()[0] if "Check" not in text else text.split()[4] for text in (one, other)]
    findings = [
        found(f"exception-{place}", f"  %z = {operator}(%x)", "exception", text=text)
        for place, (operator, text) in enumerate(zip(operators, (one, other), strict=True))
    ]
    assert bool(names(*findings)) is together


def test_three_operators_that_fail_together_are_one_cause_whatever_the_message_says() -> None:
    body = "  %q = Div(%x, %y)\n  %r = Sin(%q)\n  %z = Mul(%r, %y)"
    shorter = "  %q = Div(%x, %y)\n  %z = Mul(%q, %y)"
    assert names(
        found("exception-1", body, "exception", text="missing input"),
        found("exception-2", body, "exception", text="no sequence"),
        found("exception-3", body, "exception", text="refused", message="x; the program is invalid: y"),
        found("exception-4", shorter, "exception", text="a"),
        found("exception-5", shorter, "exception", text="b"),
    ) == [("exception-1", "exception-2")]


def test_invalid_programs_are_one_cause_if_they_break_the_same_part() -> None:
    def accepted(name: str, op: str, part: str) -> Stored:
        text = f"{op} with broken rank"
        return found(name, f"  %z = {op}(%x)", "accepted", text=text, message=f"{part} has shape [] in the call")

    assert names(accepted("a-1", "Sin", "operand X"), accepted("a-2", "Cos", "operand X")) == [("a-1", "a-2")]
    assert names(accepted("a-1", "Sin", "operand X"), accepted("a-2", "Cos", "operand Y")) == []


def test_unconfirmed_findings_are_in_no_cluster() -> None:
    assert names(
        found("wrong-1", FUSED, "wrong", ("DivMulFusion",), nodes=DIV_MUL),
        found("wrong-2", FUSED, "wrong", ("DivMulFusion",), nodes=DIV_MUL, status="unconfirmed"),
    ) == []  # fmt: skip
