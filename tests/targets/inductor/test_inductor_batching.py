"""Functions that Inductor's adapter maps over a batch: the first row is the program's own result."""

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest

from miscompile.base.specs import parse_spec
from miscompile.core.case import Case
from miscompile.core.examination import conclude
from miscompile.core.outcome import Rejected, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import tensor
from miscompile.core.verdict import Evidence, Holds, Inconclusive
from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool
from miscompile.graph.emit import to_program
from miscompile.graph.read import read
from miscompile.oracles.optimisation import Optimisation
from miscompile.triage.confirm import run_script
from miscompile.triage.script import write_script

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler"),
]

BATCHED = parse_spec("batched{seed=3}")

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'
MIXED = f"""{HEAD}
g (float[2,3] x, int64[2] i, float[3,4] w) => (float[2,4] y, float[2,3] z) {{
    m = MatMul(x, w)
    y = Softmax<axis = 1>(m)
    z = Gather<axis = 0>(x, i)
}}"""
BRANCHED = f"""{HEAD}
g (float[2] x, bool s) => (float[2] y) {{
    y = If(s) <
        then_branch = t () => (float[2] p) {{ p = Exp(x) }},
        else_branch = e () => (float[2] q) {{ q = Neg(x) }}
    >
}}"""


def case_of(text: str) -> Case:
    program = to_program(read(onnx.parser.parse_model(text).SerializeToString()))
    shapes = [tuple(size for size in port.shape or () if isinstance(size, int)) for port in program.inputs]
    feed = tuple(
        tensor(np.asarray(np.arange(np.prod(shape)).reshape(shape) % 2), port.dtype)
        for port, shape in zip(program.inputs, shapes, strict=True)
    )
    return Case(program, (feed,))


@pytest.fixture(scope="module")
def pool() -> Iterator[LocalPool]:
    with LocalPool("inductor", limits=Limits(seconds=120)) as opened:
        yield opened


def runs(text: str, level: str) -> tuple[Run, Run]:
    item = case_of(text)
    return Run(item, "inductor", Build("off")), Run(item, "inductor", Build(level, transform=BATCHED))


@pytest.mark.parametrize("level", ["off", "full"])
def test_the_first_row_is_the_programs_own_result(pool: LocalPool, level: str) -> None:
    both = runs(MIXED, level)
    outcomes = pool.run(both)
    assert all(isinstance(one, Values) for one in outcomes), outcomes
    assert isinstance(conclude(both, outcomes, Optimisation("inductor"), pool).verdict, Holds)


def test_a_branch_on_a_value_is_lawfully_refused_or_right(pool: LocalPool) -> None:
    both = runs(BRANCHED, "full")
    outcomes = pool.run(both)
    assert isinstance(outcomes[1], Values | Rejected), outcomes
    assert isinstance(conclude(both, outcomes, Optimisation("inductor"), pool).verdict, Holds | Inconclusive)


def test_a_script_maps_the_program_as_well(tmp_path: Path) -> None:
    held, faulty = runs(MIXED, "full")
    details = {"allowed": 1e-3, "difference": 1.0, "output": 0, "feed": 0}
    path = tmp_path / "repro.py"
    path.write_text(write_script(held.case, Evidence("wrong", "fixed", "a line", faulty, held, "y", details)), "utf-8")
    text = path.read_text("utf-8")
    assert "def batched" in text
    done = run_script(path)
    assert done.code == 0, (done, text)
    assert "the bug does not show" in done.stdout
