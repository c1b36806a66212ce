"""What a finding must have been asked before a person files it."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from miscompile.core.case import Case, Port, Program
from miscompile.core.finding import Finding, Property, Signature
from miscompile.core.tensor import tensor
from miscompile.findings.folder import Stored
from miscompile.triage.confirm import ScriptResult
from miscompile.triage.ready import RunScript, readiness, script_runner

PORT = Port("x", "float32", (1,))
CASE = Case(Program("onnx", b"bytes", (PORT,), (PORT,)), ((tensor(np.zeros(1, np.float32)),),))
WHOLE: dict[str, Any] = {"releases": {"first_bad": "1.0"}, "faulty": {"disabled": []}}


def stored(**facts: object) -> Stored:
    held = Property("pair", "toy", Signature("toy", "wrong", "", ("Fuse",), ""))
    return Stored(Finding("wrong-1", held, CASE, "m", {**WHOLE, **facts}), "confirmed")


def answering(status: str, limited: str = "shows") -> RunScript:
    def run(variables: Mapping[str, str]) -> ScriptResult:
        return ScriptResult(limited if variables else status, 1, "", "", 0.1)  # type: ignore[arg-type]

    return run


CAPS = {"AVX2": {"MAX_ISA": "AVX2"}}


def missing(one: Stored, run: RunScript, filed: str = "") -> list[str]:
    return readiness(one, CAPS, filed, run, several_releases=True).missing


def test_a_finding_that_passes_every_check_is_ready() -> None:
    said = readiness(stored(), CAPS, "", answering("shows"), several_releases=True)
    assert said.missing == []
    assert said.as_json()["ready"] is True
    assert "processor limited to AVX2" in said.checks


@pytest.mark.parametrize(
    ("one", "run", "filed", "lacks"),
    [
        (replace(stored(), status="known"), answering("shows"), "", "it is known"),
        (stored(), answering("shows"), "https://example.org/1", "https://example.org/1"),
        (stored(needs=["option a"]), answering("shows"), "", "needs option a"),
        (stored(faulty={"disabled": ["A", "B"]}), answering("shows"), "", "2 passes switched off"),
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
    assert run({"CAP": "2"}).status == "shows"
    assert run({}).status == "absent"
