"""Findings of a campaign held against its ledger: absorbed, regressions, or new."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from miscompile import __version__
from miscompile.core.case import Case
from miscompile.core.finding import Finding, Property, Signature
from miscompile.core.run import Build, Run
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Evidence
from miscompile.engine.known_bugs import ENTERED, REGRESSION, KnownBugs, new_ones, release_under_test
from miscompile.findings.encode import evidence_facts, jsonable
from miscompile.findings.folder import FindingStatus, Stored
from miscompile.findings.ledger import Ledger
from miscompile.findings.ledger_entry import LedgerEntry
from miscompile.graph.emit import to_program
from miscompile.graph.text.parser import parse_model
from miscompile.triage.predicate import BugPredicate, NodePattern

NOW, LATER = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
OLD, NEW = "onnxruntime==1.20.1", "onnxruntime==1.21.0"


def predicate(target: str, *ops: str, passes: tuple[str, ...] = ("Fuse",)) -> BugPredicate:
    nodes = tuple(NodePattern(op, ("?", "?"), (f"v{place}",)) for place, op in enumerate(ops))
    return BugPredicate(target, "wrong", "", "", passes, "", nodes, {})


def a_stored(
    name: str = "wrong-1", target: str = OLD, ops: tuple[str, ...] = ("Sub",), culprits: tuple[str, ...] = ("Fuse",),
    status: FindingStatus = "confirmed", **facts: Any,
) -> Stored:  # fmt: skip
    body = "\n".join(f"  %v{place} = {op}(%x, %y)" for place, op in enumerate(ops))
    outputs = ", ".join(f"%v{place}: float32[2]" for place in range(len(ops)))
    text = f"ir 10\nopset 18\n\ngraph g(%x: float32[2], %y: float32[2]) -> ({outputs}) {{\n{body}\n}}\n"
    ones = tensor(np.ones(2, np.float32))
    case = Case(to_program(parse_model(text)), ((ones, ones),))
    faulty = Run(case, target, Build("full"))
    told = evidence_facts(Evidence("wrong", "exact", "v0 differs", faulty))
    told |= {"predicate": predicate(target, *ops, passes=culprits).as_json(), **facts}
    held = Property("optimisation", target, Signature(target, "wrong", "", culprits, ""))
    return Stored(
        Finding(name, held, case, "v0 differs", told), status, None, {"onnxruntime": target.partition("==")[2]}
    )


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "ledger.db") as one:
        yield one


def known(ledger: Ledger, target: str = OLD, campaign: str = "a") -> KnownBugs:
    return KnownBugs(ledger, campaign, {target: target.partition("==")[2]})


def only(ledger: Ledger) -> LedgerEntry:
    (entry,) = ledger.entries()
    return entry


def test_a_new_finding_becomes_an_open_bug_of_all_releases(ledger: Ledger) -> None:
    fresh = known(ledger).enter(a_stored())
    assert (fresh.status, fresh.finding.facts[ENTERED]) == ("confirmed", "onnxruntime:wrong:Fuse")
    entry = only(ledger)
    assert (entry.state, entry.finding, entry.campaign, entry.seen) == ("open", "wrong-1", "a", 1)
    assert (entry.first_release, entry.last_release, entry.message) == ("1.20.1", "1.20.1", "v0 differs")
    assert entry.predicate == jsonable(fresh.finding.facts["predicate"])
    assert known(ledger).enter(fresh) is fresh


@pytest.mark.parametrize("status", ["pending", "unconfirmed"])
def test_findings_that_prove_nothing_are_not_entered(ledger: Ledger, status: FindingStatus) -> None:
    stored = a_stored(status=status)
    assert known(ledger).enter(stored) is stored
    assert ledger.entries() == []


def test_a_finding_that_the_targets_own_table_knows_is_reported(ledger: Ledger) -> None:
    known(ledger).enter(a_stored(status="known", known={"link": "https://a", "note": "n"}))
    assert (only(ledger).state, only(ledger).link, only(ledger).note) == ("reported", "https://a", "n")


@pytest.mark.parametrize("state", ["open", "reported", "wontfix", "invalid"])
def test_a_look_alike_of_a_bug_is_absorbed(ledger: Ledger, state: str) -> None:
    known(ledger).enter(a_stored())
    ledger.put(replace(only(ledger), state=state, link="https://a", note="n"))  # type: ignore[arg-type]
    fresh = known(ledger, NEW, "b").enter(a_stored("wrong-2", NEW))
    assert fresh.status == "known"
    assert fresh.finding.facts["known"]["link"] == "https://a"
    assert state in fresh.finding.facts["known"]["note"]
    assert REGRESSION not in fresh.finding.facts
    assert (only(ledger).state, only(ledger).seen, only(ledger).last_release) == (state, 2, "1.21.0")


def test_a_campaign_that_was_killed_before_it_noted_its_entry_announces_its_own_finding(ledger: Ledger) -> None:
    for _ in range(2):
        assert known(ledger).enter(a_stored()).status == "confirmed"
    assert known(ledger, campaign="b").enter(a_stored()).status == "known"  # the same case in another campaign
    ledger.change(only(ledger).key, lambda one: one.closed("fixed-in", "", NOW, "1.20"))
    for _ in range(2):
        assert known(ledger, campaign="c").enter(a_stored("wrong-3")).finding.facts[REGRESSION]["fixed_in"] == "1.20"


def test_a_look_alike_after_the_fix_is_a_regression_and_announced_once(ledger: Ledger) -> None:
    known(ledger).enter(a_stored())
    ledger.change(only(ledger).key, lambda one: one.closed("fixed-in", "", LATER, "1.21"))
    assert known(ledger, OLD, "b").enter(a_stored("wrong-2")).status == "known"  # an older release
    fresh = known(ledger, NEW, "c").enter(a_stored("wrong-3", NEW, status="known"))
    assert fresh.status == "confirmed"
    assert fresh.finding.facts[REGRESSION] == {"fixed_in": "1.21", "release": "1.21.0", "link": ""}
    entry = only(ledger)
    assert (entry.state, entry.regressed_in, entry.finding) == ("open", "1.21.0", "wrong-3")
    assert known(ledger, NEW, "d").enter(a_stored("wrong-4", NEW)).status == "known"


def test_the_state_of_a_duplicate_is_that_of_its_original(ledger: Ledger) -> None:
    known(ledger).enter(a_stored())
    known(ledger).enter(a_stored("wrong-2", ops=("Mul",), culprits=("Other",)))
    first, second = ledger.entries()
    ledger.duplicate(second.key, first.key, LATER)
    ledger.change(first.key, lambda one: one.closed("fixed-in", "", LATER, "1.21"))
    fresh = known(ledger, NEW, "b").enter(a_stored("wrong-3", NEW, ops=("Mul",), culprits=("Other",)))
    assert fresh.finding.facts[REGRESSION]["fixed_in"] == "1.21"
    assert [one.state for one in ledger.entries()] == ["open", "duplicate-of"]


def test_another_bug_of_the_same_passes_is_a_bug_of_its_own(ledger: Ledger) -> None:
    known(ledger).enter(a_stored())
    fresh = known(ledger, campaign="b").enter(a_stored("wrong-2", ops=("Mul",)))
    assert fresh.status == "confirmed"
    assert str(fresh.finding.property.signature) == f"{OLD}:wrong:Fuse in Mul"
    assert [one.key for one in ledger.entries()] == ["onnxruntime:wrong:Fuse", "onnxruntime:wrong:Fuse in Mul"]
    assert known(ledger, campaign="c").enter(a_stored("wrong-3", ops=("Mul",))).status == "known"


def test_an_entry_whose_predicate_matches_stands_for_the_bug_under_another_signature(ledger: Ledger) -> None:
    known(ledger).enter(a_stored())
    alike = a_stored("wrong-2", ops=("Sub", "Mul"), culprits=("Fold", "Fuse"))
    fresh = known(ledger, campaign="b").enter(alike)
    assert (fresh.status, fresh.finding.facts[ENTERED]) == ("known", "onnxruntime:wrong:Fuse")
    others = a_stored("wrong-3", ops=("Mul",), culprits=("Fold", "Fuse"))
    assert known(ledger, campaign="b").enter(others).status == "confirmed"


def test_a_campaign_steers_past_the_bugs_of_the_ledger_in_its_own_release(ledger: Ledger) -> None:
    known(ledger).enter(a_stored())
    (bug,), problems = known(ledger, NEW).steered()
    assert problems == []
    assert (bug.predicate.target, bug.signature.target) == (NEW, NEW)
    assert bug.predicate.nodes == predicate(OLD, "Sub").nodes
    assert new_ones([bug], [bug]) == []
    assert known(ledger, "openvino==2026.0").steered() == ([], [])
    ledger.change(only(ledger).key, lambda one: one.closed("fixed-in", "", LATER, "1.21"))
    assert known(ledger, NEW).steered() == ([], [])  # it would be a regression
    assert len(known(ledger, OLD).steered()[0]) == 1
    ledger.put(replace(only(ledger), predicate={"nodes": 3}))
    bugs, (problem,) = known(ledger, OLD).steered()
    assert bugs == []
    assert "onnxruntime:wrong:Fuse" in problem


def test_a_finding_of_an_older_release_is_outlived_by_the_fix(ledger: Ledger) -> None:
    stored = known(ledger).enter(a_stored())
    bare = KnownBugs(ledger, "a", {OLD: "1.21.0"})  # the same campaign, after an upgrade
    assert not bare.outlived(stored)
    ledger.change(only(ledger).key, lambda one: one.closed("fixed-in", "", LATER, "1.21"))
    assert bare.outlived(stored)
    assert not known(ledger).outlived(stored)
    assert not bare.outlived(replace(stored, versions={"onnxruntime": "1.21.0"}))
    assert not bare.outlived(a_stored())


def test_sightings_are_saved_with_the_release_under_test(ledger: Ledger) -> None:
    known(ledger).enter(a_stored())
    campaign = known(ledger, NEW)
    for _ in range(3):
        campaign.sighted(Signature(NEW, "wrong", "", ("Fuse",), ""))
    campaign.sighted(Signature(NEW, "wrong", "", ("Unknown",), ""))
    campaign.save()
    assert (only(ledger).seen, only(ledger).last_release) == (4, "1.21.0")
    ledger.put(replace(only(ledger), signature=Signature("onnxruntime", "wrong", "", ("Unknown",), ""), seen=0))
    campaign.save()  # now that its finding was triaged
    assert [entry.seen for entry in ledger.entries()] == [4, 1]


def test_a_target_that_is_part_of_this_package_has_its_release() -> None:
    assert release_under_test("toy{bugs=all}") == __version__
