"""A triage worker looks in the index for the finding that a reduced one duplicates or follows from."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from miscompile.core.case import Case
from miscompile.core.finding import Finding, Property, Signature
from miscompile.core.tensor import tensor
from miscompile.findings.folder import FindingStatus, Stored
from miscompile.findings.store import Campaign, Store
from miscompile.graph.emit import to_program
from miscompile.graph.text.parser import parse_model
from miscompile.triage.predicate import BugPredicate, NodePattern
from miscompile.triage.settings import TriageSettings
from miscompile.triage.worker import duplicate_of

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
    return duplicate_of(TriageSettings(out, ("toy",)), fresh)


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
    assert duplicate_of(TriageSettings(tmp_path / "none", ("toy",)), fresh) is None
