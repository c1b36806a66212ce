"""Issue texts as files that a person can open. `UPDATE_SNAPSHOTS=1 pytest tests/snapshot` writes them anew."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from miscompile.core.case import Case, Port, Program
from miscompile.core.finding import Finding, Property, Signature
from miscompile.core.run import Build, Run
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Evidence, FindingKind
from miscompile.findings.encode import evidence_facts
from miscompile.findings.folder import Stored
from miscompile.reports.issue import render_issue
from miscompile.reports.wording import title_of

SNAPSHOTS = Path(__file__).parent / "issues"
PORT = Port("x", "float32", (2,))
CASE = Case(
    Program("onnx", b"bytes", (PORT,), (Port("y", "float32", (2,), exact=True),)),
    ((tensor(np.ones(2, np.float32)),),),
    {"seed": 7, "index": 40},
)
MODEL = "graph (x: float32[2]) -> (y: float32[2]) {\n  y = Add(x, x)\n}"


def wrong() -> Stored:
    evidence = Evidence(
        "wrong", "exact", "output 'y': 2 of 2 elements differ", Run(CASE, "toy", Build()),
        Run(CASE, "toy", Build("off")), "y", {"feed": 0, "output": 0, "difference": 1.5},
    )  # fmt: skip
    facts = {**evidence_facts(evidence), "test": 40, "nodes": 1, "original_nodes": 9, "reproduced": True}
    facts["needs"] = ["session option wide.sums"]
    facts["switching"] = {"alone": True, "gone": {"FuseAdd": True}}
    held = Property("pair", "toy", Signature("toy", "wrong", "", ("FuseAdd",), ""))
    finding = Finding("wrong-0123456789", held, CASE, evidence.message, facts)
    return Stored(finding, "confirmed", None, {"numpy": "2.0.0"}, 'print("```")\nraise SystemExit(1)\n')


def death() -> Stored:
    faulty = Run(CASE, "toy", Build(disabled=frozenset({"Fold"}), threads=2))
    evidence = Evidence("death", "status", "the process died of signal 11 at compile", faulty)
    held = Property("pair", "toy", Signature("toy", "death", "compile", (), "signal 11 in Fuse::apply"))
    facts = {**evidence_facts(evidence), "known": {"link": "https://example.org/1", "note": "null operand"}}
    return Stored(Finding("death-0123456789", held, CASE, evidence.message, facts), "known")


def noise() -> Stored:
    stored = wrong()
    details = {"ratio": 812345.678, "difference": 1e-7, "allowed": 2.5e-13}
    facts = {**stored.finding.facts, "rule": "monte-carlo", "details": details}
    facts |= {"environment": {"Python": "3.11.7"}, "attribution": "Found by switching 70 passes in 12 runs."}
    held = Property("pair", "toy", Signature("toy", "wrong", "", ("Fold", "FuseAdd"), ""))
    return replace(stored, finding=replace(stored.finding, property=held, facts=facts))


STORED = {"wrong": wrong(), "death": death(), "noise": noise()}


@pytest.mark.parametrize("name", sorted(STORED))
def test_issue_text(name: str) -> None:
    text = render_issue(STORED[name], MODEL)
    path = SNAPSHOTS / f"{name}.md"
    if os.environ.get("UPDATE_SNAPSHOTS"):
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


@pytest.mark.parametrize(
    "kind", ["wrong", "missing", "shape", "dtype", "exception", "death", "hang", "memory", "accepted"]
)
def test_every_kind_of_finding_has_an_issue(kind: FindingKind) -> None:
    stored = wrong()
    held = Property("pair", "toy", Signature("toy", kind, "", (), "text"))
    bare = replace(stored, finding=replace(stored.finding, property=held, facts={}), script="", versions={})
    text = render_issue(bare, MODEL)
    assert title_of(bare) in text
    assert "No script was written" in text
    assert MODEL in text


def test_long_blocks_are_cut_at_a_line() -> None:
    text = render_issue(wrong(), "line\n" * 10_000)
    assert len(text) < 30_000
    assert "... cut here; `model.onnx` beside this text is whole\n```" in text


def test_long_constants_are_cut_in_the_text() -> None:
    text = render_issue(wrong(), MODEL + "\n  init %c = " + "7" * 1000)
    assert "7 ... (" in text
    assert max(map(len, text.splitlines())) < 500
