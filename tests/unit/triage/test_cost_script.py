"""The script of a finding of cost holds the series, the measurements and the decision, and needs the compiler alone."""

import ast

import numpy as np
import pytest

from miscompile.core.case import Case
from miscompile.core.finding import Finding, Property, Signature
from miscompile.core.run import Build, Run
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Evidence
from miscompile.findings.encode import evidence_facts
from miscompile.findings.folder import Stored
from miscompile.graph.emit import to_program
from miscompile.graph.text.parser import parse_model
from miscompile.oracles.cost import message_of, rows_from
from miscompile.oracles.cost_rules import BuildCost, Row
from miscompile.oracles.kinds import OracleContext
from miscompile.oracles.registry import hold
from miscompile.reports.issue import render_issue
from miscompile.triage.script import write_script
from miscompile.triage.signature import signature_of

MODEL = """ir 8 opset 17 graph g(%x: float32[3]) -> (%y: float32[3]) {
  %y = Abs(%x)
}"""


def series() -> list[Row]:
    def cost(seconds: float) -> BuildCost:
        return BuildCost((seconds,) * 3, (1e-4,) * 3, (0.25,) * 3, (1 << 20,) * 3, (1 << 20,) * 3)

    return [Row(n, n, cost(n / 1e5), cost(2.0 * (n / 512) ** 3)) for n in (64, 128, 256, 512)]


def evidence(target: str = "toy") -> Evidence:
    case = Case(to_program(parse_model(MODEL)), ((tensor(np.ones(3), "float32"),),))
    plain, full = (Run(case, target, Build(level)) for level in ("off", "full"))
    rows = [
        {"copies": row.copies, "nodes": row.nodes, "plain": row.plain._asdict(), "full": row.full._asdict()}
        for row in series()
    ]
    details = {"cost": "growth", "pattern": "chain", "copies": 512, "series": rows}
    return Evidence("cost", "cost", message_of("growth", series(), "off", "full", "chain"), full, plain, "", details)


@pytest.mark.parametrize("target", ["toy", "onnxruntime", "openvino", "tvm"])
def test_the_script_has_the_functions_that_decide_in_a_campaign(target: str) -> None:
    found = evidence(target)
    script = write_script(found.faulty.case, found, None, culprits=())
    names = {node.name for node in ast.walk(ast.parse(script)) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert {"run", "repeated", "cpu_seconds", "measure", "violations", "Row", "BuildCost"} <= names
    assert "rows, sizes, most = [], [64, 128, 256, 512], 2048" in script


def test_a_target_that_gets_no_onnx_has_no_script() -> None:
    found = evidence("inductor")
    assert write_script(found.faulty.case, found, None) == ""


def test_the_signature_names_the_class_and_facts_give_the_series_back() -> None:
    found = evidence()
    assert str(signature_of(found, None, ("Fusion",))) == "toy:cost@growth:Fusion"
    facts = evidence_facts(found)
    assert rows_from(facts["details"]["series"]) == series()
    assert hold("cost", found, OracleContext(("toy",))).faulty == Build("full")


def test_the_issue_has_the_series_as_a_table() -> None:
    found = evidence()
    signature = Signature("toy", "cost", "growth", ("Fusion",), "")
    held = Property("cost", "toy", signature)
    finding = Finding("cost-1", held, found.faulty.case, found.message, evidence_facts(found))
    issue = render_issue(Stored(finding, "confirmed", None, {}, ""), MODEL)
    assert "| 512 | 512 | 0.0051 | 2.0000 | 1 | 1 |" in issue
    assert "grows faster than with the square of its size" in issue
    assert "Fusion: growth out of proportion" in issue
    assert "CPU time is measured" in issue
