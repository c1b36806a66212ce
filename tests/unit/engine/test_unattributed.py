"""Findings without culprits: those that resemble no known bug come first, the others while known bugs are cheap."""

import pytest

from miscompile.core.case import Case
from miscompile.core.finding import Finding, Property, Signature
from miscompile.core.verdict import FindingKind
from miscompile.engine.unattributed import Unattributed, is_unattributed
from miscompile.findings.folder import Stored
from miscompile.graph.emit import to_program
from miscompile.graph.text.parser import parse_model
from miscompile.triage.attribution import SYMPTOM_TEXT
from miscompile.triage.predicate import BugPredicate, NodePattern
from miscompile.triage.recognition import SignedPredicate

SIGNATURE = Signature("toy", "wrong", "", (), "")
KNOWN = SignedPredicate(
    BugPredicate("toy", "wrong", "", "", ("A",), "", (NodePattern("Sub", ("x", "y"), ("a",)),), {}), SIGNATURE
)


def stored(
    identifier: str,
    operator: str = "Sub",
    kind: FindingKind = "wrong",
    *,
    message: str = "",
    culprits: tuple[str, ...] = (),
) -> Stored:
    text = f"""ir 10
opset 18

graph g(%x: float32[2], %y: float32[2]) -> (%a: float32[2]) {{
  %a = {operator}(%x, %y)
}}
"""
    held = Property("optimisation", "toy", Signature("toy", kind, "", culprits, message))
    case = Case(to_program(parse_model(text)), ())
    return Stored(Finding(identifier, held, case, "", {SYMPTOM_TEXT: message}), "pending", None, {})


def waiting(*findings: Stored) -> Unattributed:
    unattributed = Unattributed()
    for one in findings:
        unattributed.add(one)
    return unattributed


def test_a_finding_that_resembles_no_known_bug_comes_first() -> None:
    unattributed = waiting(stored("wrong-1"), stored("wrong-2", "Mul"))
    assert unattributed.take([KNOWN], look_alikes=True) == "wrong-2"
    assert len(unattributed) == 1


def test_look_alikes_wait_until_they_are_allowed() -> None:
    unattributed = waiting(stored("wrong-1"))
    assert unattributed.take([KNOWN], look_alikes=False) is None
    assert unattributed.take([KNOWN], look_alikes=True) == "wrong-1"
    assert len(unattributed) == 0


def test_one_finding_is_in_triage_at_a_time_so_that_it_may_explain_the_next() -> None:
    unattributed = waiting(stored("wrong-1"), stored("wrong-2"))
    assert unattributed.take([], look_alikes=True) == "wrong-1"
    assert unattributed.take([], look_alikes=True) is None
    unattributed.settled("wrong-9")
    assert unattributed.take([], look_alikes=True) is None
    unattributed.settled("wrong-1")
    assert unattributed.take([KNOWN], look_alikes=False) is None
    assert unattributed.take([KNOWN], look_alikes=True) == "wrong-2"


@pytest.mark.parametrize(
    "other", [stored("shape-1", kind="shape"), stored("wrong-1", message="another message")], ids=["kind", "message"]
)
def test_another_symptom_is_no_resemblance(other: Stored) -> None:
    assert waiting(other).take([KNOWN], look_alikes=False) == other.finding.identifier


def test_hangs_and_findings_with_culprits_do_not_wait() -> None:
    assert is_unattributed(stored("wrong-1"))
    assert not is_unattributed(stored("wrong-1", culprits=("A",)))
    assert not is_unattributed(stored("hang-1", kind="hang"))
