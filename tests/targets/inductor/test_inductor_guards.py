"""Inputs of Inductor lie between guard pages: sound programs hold, and a read behind the end names the input."""

import importlib.util
import signal
import subprocess
import sys

import numpy as np
import pytest

from miscompile.base.specs import Spec
from miscompile.core.case import Case
from miscompile.core.outcome import Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Evidence
from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool
from miscompile.graph.emit import to_program
from miscompile.graph.text.parser import parse_model
from miscompile.targets.guards import PLACES
from miscompile.triage.script import write_script

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
]

MODEL = """ir 8 opset 17 graph g(%x: float32[19]) -> (%y: float32[19]) {
  %e = Exp(%x)
  %y = Add(%e, %x)
}"""

CASE = Case(to_program(parse_model(MODEL)), ((tensor(np.linspace(-1, 1, 19), "float32"),),))


def guarded(place: str) -> Build:
    return Build("full", transform=Spec("guarded").with_options(place=place))


def test_a_sound_program_holds_at_every_place() -> None:
    with LocalPool("inductor", 1, Limits(seconds=120)) as pool:
        seen = pool.run([Run(CASE, "inductor", build) for build in (Build("full"), *map(guarded, PLACES))])
    assert all(isinstance(outcome, Values) for outcome in seen), seen
    usual, *others = [outcome.results for outcome in seen if isinstance(outcome, Values)]
    for found in others:
        left, right = found[0][0], usual[0][0]
        assert left is not None
        assert right is not None
        np.testing.assert_allclose(left.numbers(), right.numbers(), rtol=1e-5)


def test_a_read_behind_an_input_dies_and_names_it() -> None:
    reads = (
        "import numpy as np, torch\n"
        "from miscompile.targets.inductor.runner import run_guarded\n"
        "def reads(x): return (torch.as_strided(x, (19,), (1,)), x.untyped_storage()[0], peek(x))\n"
        "import ctypes\n"
        "def peek(x): return ctypes.string_at(x.data_ptr() + 76, 4)\n"
        "run_guarded(reads, {'x': np.zeros(19, np.float32)}, {}, 'end', 63)\n"
    )
    done = subprocess.run([sys.executable, "-c", reads], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGSEGV, done.stderr
    assert "guard: reads behind the end of input 'x' (76 bytes) at byte 76" in done.stderr


@pytest.mark.slow  # a fresh process compiles its headers first
def test_the_script_has_the_guards() -> None:
    evidence = Evidence(
        "death", "memory", "read behind: ...", Run(CASE, "inductor", guarded("end")), None, "",
        {"memory": "read behind", "role": "input", "fills": [63, 63]},
    )  # fmt: skip
    script = write_script(CASE, evidence)
    assert 'run_guarded(function, feed, {}, "end", 63)' in script
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, "the bug does not show" in done.stdout) == (0, True), done.stderr
