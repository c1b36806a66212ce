import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest

from miscompile.core.case import Case
from miscompile.core.outcome import Crashed, Observations
from miscompile.core.run import Build, Run
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Evidence
from miscompile.execution.conformance import check_target
from miscompile.execution.pool import LocalPool
from miscompile.graph.emit import to_program
from miscompile.graph.text.parser import parse_model
from miscompile.triage.first_access import first_bad_access
from miscompile.triage.script import write_script

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(importlib.util.find_spec("MNN") is None, reason="MNN is not installed"),
]


def test_mnn_keeps_the_contract() -> None:
    check_target("mnn", LocalPool)


NORMALISED = """ir 8 opset 15 graph g(%x: float32[300]) -> (%y: float32[300]) {
  init %one: float32[1] = [1]
  %y = BatchNormalization(%x, %one, %one, %one, %one)
}"""
"""A vector, the normalisation of which writes behind its memory in MNN 3.6.1."""


@pytest.mark.slow  # valgrind takes a quarter of a minute of CPU time
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed; it is optional")
def test_the_first_bad_access_of_a_corrupted_heap_is_named(tmp_path: Path) -> None:
    case = Case(to_program(parse_model(NORMALISED)), ((tensor(np.ones(300), "float32"),),))
    dead = Crashed("run", 6, Observations(stderr="malloc(): invalid size (unsorted)"))
    evidence = Evidence("death", "status", "it dies", Run(case, "mnn", Build("full")))
    script = tmp_path / "repro.py"
    script.write_text(write_script(case, evidence, dead), "utf-8")
    found = first_bad_access(script, dead)
    assert found is not None
    assert found.what == "writes 8 bytes"
    assert any("MNN" in frame for frame in found.frames)
