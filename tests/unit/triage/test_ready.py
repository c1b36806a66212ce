"""What a finding must have been asked before a person files it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from miscompile.core.case import Case, Port, Program
from miscompile.core.finding import Finding, Property, Signature
from miscompile.core.run import Build, Run
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Evidence
from miscompile.findings.folder import Stored
from miscompile.graph.emit import to_program
from miscompile.graph.model import Graph, Model, Node, TensorType, ValueInfo
from miscompile.targets.about import CpuCap
from miscompile.targets.registry import parse_target
from miscompile.triage.confirm import ScriptResult
from miscompile.triage.ready import NO_CAP, RunScript, readiness, script_runner
from miscompile.triage.script import write_script

PORT = Port("x", "float32", (1,))
CASE = Case(Program("onnx", b"bytes", (PORT,), (PORT,)), ((tensor(np.zeros(1, np.float32)),),))
WHOLE: dict[str, Any] = {"releases": {"first_bad": "1.0"}, "faulty": {"disabled": []}}


def stored(**facts: object) -> Stored:
    held = Property("pair", "toy", Signature("toy", "wrong", "", ("Fuse",), ""))
    return Stored(Finding("wrong-1", held, CASE, "m", {**WHOLE, **facts}), "confirmed")


def answering(status: str, limited: str = "shows") -> RunScript:
    def run(cap: CpuCap) -> ScriptResult:
        return ScriptResult(limited if cap != NO_CAP else status, 1, "", "", 0.1)  # type: ignore[arg-type]

    return run


CAPS = {"AVX2": CpuCap({"MAX_ISA": "AVX2"})}


def missing(one: Stored, run: RunScript, filed: str = "") -> list[str]:
    return readiness(one, CAPS, filed, run, several_releases=True).missing


def test_a_finding_that_passes_every_check_is_ready() -> None:
    said = readiness(stored(), CAPS, "", answering("shows"), several_releases=True)
    assert said.missing == []
    assert said.as_json()["ready"] is True
    assert "processor features AVX2" in said.checks


@pytest.mark.parametrize(
    ("one", "run", "filed", "lacks"),
    [
        (replace(stored(), status="known"), answering("shows"), "", "it is known"),
        (stored(), answering("shows"), "https://example.org/1", "https://example.org/1"),
        (replace(stored(needs=["option a"]), status="non-default"), answering("shows"), "", "needs option a"),
        (stored(faulty={"disabled": ["A", "B"]}), answering("shows"), "", "2 optional passes switched off"),
        (stored(), answering("absent"), "", "in 2 of 2 processes"),
        (stored(), answering("broken"), "", "says nothing"),
        (stored(), answering("shows", "absent"), "", "in 1 of 1 processes"),
        (stored(releases=None), answering("shows"), "", "first bad release"),
    ],
)
def test_each_check_says_what_is_missing(one: Stored, run: RunScript, filed: str, lacks: str) -> None:
    [text] = missing(one, run, filed)
    assert lacks in text


def test_a_script_runs_with_further_variables(tmp_path: Path) -> None:
    script = tmp_path / "repro.py"
    script.write_text('import os, sys\nif os.environ.get("CAP") == "2":\n    print("BUG:")\n    sys.exit(1)\n')
    run = script_runner(script, None, 30)
    assert run(CpuCap({"CAP": "2"})).status == "shows"
    assert run(NO_CAP).status == "absent"


def test_a_script_runs_with_other_words(tmp_path: Path) -> None:
    script = tmp_path / "repro.py"
    script.write_text('import sys\nif "--cpu=old" == "--cpu=" + "old":\n    print("BUG:")\n    sys.exit(1)\n')
    run = script_runner(script, None, 30)
    assert run(NO_CAP).status == "shows"
    assert run(CpuCap(words=("--cpu=old", "--cpu=host"))).status == "absent"
    assert "--cpu=old" in script.read_text(), "the finding's own script stays"


@pytest.mark.parametrize("target", ["iree", "tvm", "xla"])
def test_scripts_name_the_processor_features_that_are_replaced(target: str) -> None:
    kind = TensorType("float32", (1,))
    graph = Graph("g", (ValueInfo("x", kind),), (ValueInfo("y", kind),), (Node("Relu", ("x",), ("y",)),))
    case = Case(to_program(Model(graph, {"": 18}, ir_version=9)), ((tensor(np.ones(1, np.float32)),),))
    runs = [Run(case, target, Build(level)) for level in ("off", "full")]
    script = write_script(case, Evidence("wrong", "exact", "m", runs[1], runs[0], "y", {}))
    caps = parse_target(target).about.cpu_caps
    assert caps
    for cap in caps.values():
        assert cap.words is not None
        assert cap.words[0] in script


def test_a_compiler_without_a_switch_is_told() -> None:
    said = readiness(stored(), {}, "", answering("shows"), several_releases=True)
    assert said.missing == []
    assert "no switch for processor features" in said.as_json()["notes"][0]
