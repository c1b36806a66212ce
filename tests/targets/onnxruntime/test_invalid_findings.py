"""A finding about an invalid program that ONNX Runtime accepts goes through triage: reduced, confirmed, described."""

import random
from pathlib import Path

import numpy as np
import pytest

from miscompile.core.case import Case
from miscompile.core.examination import examine
from miscompile.core.pool import Pool
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Violated
from miscompile.findings.folder import Stored
from miscompile.graph.attributes import attributes
from miscompile.graph.emit import to_program
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.read import read
from miscompile.oracles.disruptive import Disruptive
from miscompile.oracles.kinds import OracleContext
from miscompile.producers.disruptive.checker import refusal_of
from miscompile.reports.issue import render_issue
from miscompile.triage.attribution import to_stored
from miscompile.triage.conclude import triage
from miscompile.triage.reduce.engine import Budget
from miscompile.triage.settings import TriageSettings
from miscompile.triage.signature import signature_of

pytestmark = [pytest.mark.compiler, pytest.mark.process]

BEFORE = ("Relu", "Neg", "Abs", "Neg")
AFTER = ("Relu", "Neg", "Abs", "Neg", "Relu")


def ten_nodes() -> Case:
    """Normalise over axis 4 of a tensor of rank 4, with four nodes before and five after it."""
    nodes = [Node(op, (f"v{place}",), (f"v{place + 1}",)) for place, op in enumerate(BEFORE)]
    wrong = Node("MeanVarianceNormalization", ("v4",), ("v5",), attributes({"axes": [0, 2, 4]}))
    nodes += [wrong, *(Node(op, (f"v{place + 5}",), (f"v{place + 6}",)) for place, op in enumerate(AFTER))]
    inputs = (ValueInfo("v0", TensorType("float32", (2, 3, 4, 5))),)
    outputs = (ValueInfo("v10", TensorType("float32", (None,) * 4)),)
    program = to_program(Model(Graph("g", inputs, outputs, tuple(nodes)), {"": 18}, ir_version=8))
    broken = {"kind": "attribute", "place": "attribute axes", "detail": "attribute axes is [0, 2, 4]", "refusal": "no"}
    recipe = {
        "oracle": "disruptive", "op": "MeanVarianceNormalization", "broken": broken, "proof": "checker",
        "counts": "acceptance",
    }  # fmt: skip
    feed = (tensor(np.arange(120, dtype=np.float32).reshape(2, 3, 4, 5)),)
    return Case(program, (feed,), recipe)


def pending(pool: Pool, context: OracleContext) -> Stored:
    case = ten_nodes()
    seen = examine(case, Disruptive("onnxruntime"), pool, random.Random(0))
    assert isinstance(seen.verdict, Violated), seen.verdict
    evidence = seen.verdict.evidence
    signature = signature_of(evidence, seen.faulty, (), read(case.program.payload))
    return to_stored(evidence, signature, case, {"onnxruntime": "x"}, context)


@pytest.mark.slow
def test_ten_nodes_come_down_to_the_operator_that_is_called_wrongly(tmp_path: Path) -> None:
    settings = TriageSettings(tmp_path, ("onnxruntime",))
    with settings.pool() as pool:
        done = triage(pending(pool, settings.context), settings, pool, Budget(400)).stored
    case, facts = done.finding.case, done.finding.facts
    assert (facts["original_nodes"], facts["nodes"], done.status) == (10, 1, "confirmed")
    (node,) = read(case.program.payload).graph.nodes
    assert node.op == "MeanVarianceNormalization"
    assert refusal_of(case.program.payload), "onnx's checker still refuses the model"
    assert sum(value.array.size for feed in case.feeds for value in feed) <= 1
    line = f"attribute axes is {list(node.attributes['axes'].value)} in the call MeanVarianceNormalization("
    assert line in done.finding.message
    issue = render_issue(done, "model")
    assert line in issue
    assert "where an error is expected" in issue
    assert facts["details"]["refusal"] == refusal_of(case.program.payload)
