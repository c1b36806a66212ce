"""A triage worker looks in the index for the finding that a reduced one duplicates or follows from."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from miscompile.core.case import Case
from miscompile.core.finding import Finding, Property, Signature
from miscompile.core.run import Build, Run
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Evidence
from miscompile.findings.folder import FindingStatus, Stored
from miscompile.findings.store import Campaign, Store
from miscompile.graph.emit import to_program
from miscompile.graph.text.parser import parse_model
from miscompile.triage.predicate import BugPredicate, NodePattern
from miscompile.triage.triaged import TriagedFindings

PROGRAM = """ir 10
opset 18

graph g(%p: float32[2]) -> (%r: float32[2]) {
  %n = Neg(%p)
  %r = Relu(%n)
}
"""


def stored(identifier: str, ops: str, *culprits: str, status: FindingStatus = "confirmed") -> Stored:
    signature = Signature("toy", "wrong", "", culprits, "")
    names = [*"abcde"]
    nodes = tuple(NodePattern(op, (names[i],), (names[i + 1],)) for i, op in enumerate(ops.split()))
    predicate = BugPredicate("toy", "wrong", "", "", culprits, "", nodes, {})
    case = Case(to_program(parse_model(PROGRAM)), ((tensor(np.zeros(2, np.float32)),),))
    facts = {"predicate": predicate.as_json()}
    return Stored(Finding(identifier, Property("optimisation", "toy", signature), case, "m", facts), status, None, {})


def asked(out: Path, fresh: Stored, *known: Stored) -> Signature | None:
    with Store.open(out) as store:
        store.begin(Campaign("toy", 0, {}, {}, 0.0))
        for one in known:
            store.update(one, new=True)
    return TriagedFindings(out).duplicated(fresh)


def test_an_equal_signature_or_a_contained_bug_is_a_duplicate(tmp_path: Path) -> None:
    cause, fresh = stored("wrong-1", "Relu", "B"), stored("wrong-2", "Neg Relu", "A", "B")
    assert asked(tmp_path / "a", fresh, cause) == cause.finding.property.signature
    waiting = replace(fresh, status="pending")
    assert asked(tmp_path / "itself", fresh, cause, waiting) == cause.finding.property.signature
    same = replace(fresh, finding=replace(fresh.finding, identifier="wrong-3"))
    assert asked(tmp_path / "b", same, fresh) == fresh.finding.property.signature


def test_a_bug_that_is_not_triaged_or_not_contained_is_no_owner(tmp_path: Path) -> None:
    fresh = stored("wrong-2", "Neg Relu", "A", "B")
    others = (stored("wrong-1", "Relu", "B", status="unconfirmed"), stored("wrong-4", "Sin", "A"))
    assert asked(tmp_path / "a", fresh, *others) is None
    assert asked(tmp_path / "b", stored("wrong-5", "Neg Relu", "B"), stored("wrong-6", "Relu", "C")) is None
    assert asked(tmp_path / "c", fresh, fresh) is None, "it is no duplicate of itself"
    assert TriagedFindings(tmp_path / "none").duplicated(fresh) is None


def test_a_violation_that_a_known_predicate_explains_is_recognised_before_it_is_reduced(tmp_path: Path) -> None:
    cause = stored("wrong-1", "Relu", "B")
    run = Run(cause.finding.case, "toy", Build("full"))
    with Store.open(tmp_path) as store:
        store.begin(Campaign("toy", 0, {}, {}, 0.0))
        store.update(cause, new=True)
    triaged = TriagedFindings(tmp_path)
    evidence = Evidence("wrong", "", "m", run, None, "", {})
    assert triaged.recognise(run.case, evidence, None) == cause.finding.property.signature
    assert triaged.recognise(run.case, evidence, None, "wrong-1") is None, "it is no duplicate of itself"
    off = replace(evidence, faulty=replace(run, build=Build("full", frozenset({"B"}))))
    assert triaged.recognise(run.case, off, None) is None, "the guilty pass is off"
    assert triaged.recognise(run.case, replace(evidence, kind="shape"), None) is None, "it is another symptom"
    assert TriagedFindings(tmp_path / "none").recognise(run.case, evidence, None) is None
