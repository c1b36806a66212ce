"""Triage recognises a bug that ONNX Runtime's `known.toml` lists, and confirms it with one run of its script."""

import random
from pathlib import Path

import numpy as np
import pytest

from miscompile.core.case import Case
from miscompile.core.examination import examine
from miscompile.core.pool import Pool
from miscompile.core.run import Build
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Violated
from miscompile.findings.folder import Stored
from miscompile.graph.emit import to_program
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.graph.read import read
from miscompile.oracles.kinds import OracleContext
from miscompile.oracles.pair import BuildPair
from miscompile.triage.attribution import to_stored
from miscompile.triage.conclude import triage
from miscompile.triage.reduce.engine import Budget
from miscompile.triage.settings import TriageSettings
from miscompile.triage.signature import signature_of

pytestmark = [pytest.mark.compiler, pytest.mark.process]


def clipped_relu() -> Case:
    """Clip integers behind a Relu, which the pass FuseReluClip refuses."""
    integers = TensorType("int64", (3,))
    bound = tensor(np.array(0, np.int64))
    nodes = (Node("Relu", ("x",), ("r",)), Node("Clip", ("r", "low"), ("y",)))
    graph = Graph("g", (ValueInfo("x", integers),), (ValueInfo("y", integers),), nodes, {"low": bound})
    feed = (tensor(np.array([-1, 0, 1], np.int64)),)
    return Case(to_program(Model(graph, {"": 18}, ir_version=8)), (feed,))


def pending(pool: Pool, context: OracleContext) -> Stored:
    case = clipped_relu()
    seen = examine(case, BuildPair("onnxruntime", Build("off"), Build("full")), pool, random.Random(0))
    assert isinstance(seen.verdict, Violated), seen.verdict
    signature = signature_of(seen.verdict.evidence, seen.faulty, (), read(case.program.payload))
    return to_stored(seen.verdict.evidence, signature, case, {"onnxruntime": "x"}, context)


def test_a_listed_bug_is_known_after_one_run_of_its_script(tmp_path: Path) -> None:
    settings = TriageSettings(tmp_path, ("onnxruntime",))
    with settings.pool() as pool:
        done = triage(pending(pool, settings.context), settings, pool, Budget(100)).stored
    assert str(done.finding.property.signature).startswith("onnxruntime:exception@compile:FuseReluClip in Fail: ")
    assert done.status == "known", done.finding.facts.get("unconfirmed")
    assert done.finding.facts["reproduced"] is True
    assert done.finding.facts["known"]["link"] == "https://github.com/microsoft/onnxruntime/issues/23116"
