"""From the campaign to the report: a pass of the toy that takes CPU time with the cube of the program is found.

The fault takes CPU time and does not wait, so that the measurements are those of the toy alone, however busy the
machine is. No other compiler's time is judged.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from campaigns import Start

from miscompile.core.case import Case
from miscompile.core.outcome import Measured, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import tensor
from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool
from miscompile.graph.emit import to_program
from miscompile.graph.text.parser import parse_model
from miscompile.oracles.cost import copies
from miscompile.transforms.runner import TransformingRunner

pytestmark = pytest.mark.process

FAULTY = "toy{bugs=cubic_cse}"

MODEL = """ir 8 opset 17 graph g(%x: float32[3]) -> (%y: float32[3]) {
  %y = Abs(%x)
}"""


def measured(level: str, measure: int, size: int = 400) -> Measured | None:
    case = Case(to_program(parse_model(MODEL)), ((tensor(np.zeros(3), "float32"),),))
    build = Build(level, transform=copies("chain", size), measure=measure)
    with TransformingRunner(LocalPool(FAULTY, 1, Limits(seconds=60))) as pool:
        (outcome,) = pool.run([Run(case, FAULTY, build)])
    assert isinstance(outcome, Values)
    return outcome.observations.measured


def test_a_worker_measures_the_stages_where_a_build_asks_for_it() -> None:
    assert measured("off", 0, 4) is None
    plain, full = measured("off", 1), measured("full", 1)
    assert plain is not None
    assert full is not None
    assert full.compile_cpu >= 1.0 > plain.compile_cpu, "the fault takes a second of CPU time for 400 calls"
    assert full.repeats >= 1
    assert full.run_cpu > 0


@pytest.mark.slow  # a campaign with triage, minutes of CPU time
def test_a_fault_that_costs_time_is_found_reduced_and_reported(tmp_path: Path, start: Start) -> None:
    small = ("--ops", "Abs,Neg,Relu", "--dtypes", "float32", "--nodes", "3")  # a series can be made of these
    words = ("--check", "cost", "--seed", "2", "--workers", "1", "--tests", "1", *small, "--json")
    code, stdout, stderr = start(tmp_path / "out", FAULTY, *words, limit=60.0).end(900)
    assert code == 1, stderr
    (found,) = json.loads(stdout)["findings"]
    assert found["signature"].startswith("toy:cost@")
    assert found["signature"].endswith(":CommonSubexpression")
    assert found["status"] == "confirmed"
    folder = next((tmp_path / "out" / "findings").iterdir())
    issue = (folder / "issue.md").read_text("utf-8")
    assert "| copies | nodes | CPU s of a build, unoptimised | CPU s of a build, optimised |" in issue
    script = (folder / "repro.py").read_text("utf-8")
    sound = tmp_path / "sound.py"
    sound.write_text(script.replace('"cubic_cse"', '"none"'), "utf-8")
    done = subprocess.run([sys.executable, str(sound)], capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, "the bug does not show" in done.stdout) == (0, True), done.stderr
