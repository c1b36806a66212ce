"""Functions that XLA maps over a batch: the first row is the result of the program, and scripts do the same."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from test_xla_passes import LARGEST, RECURRENT, case_of

from miscompile.base.specs import parse_spec
from miscompile.core.examination import conclude
from miscompile.core.outcome import Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Tensor
from miscompile.core.verdict import Evidence, Holds, Violated
from miscompile.execution.pool import LocalPool
from miscompile.oracles.optimisation import Optimisation
from miscompile.triage.confirm import run_script
from miscompile.triage.script import write_script

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed here"),
]

BATCHED = parse_spec("batched{seed=3}")

MIXED = """g (float[2,3] x, int64[2] i, bool s) => (float[2,3] y, float[2,3] z, bfloat16[2,3] c) {
    y = If(s) <
        then_branch = t () => (float[2,3] p) { p = Exp(x) },
        else_branch = e () => (float[2,3] q) { q = Neg(x) }
    >
    z = Gather<axis = 0>(x, i)
    c = Cast<to = 16>(z)
}"""


@pytest.fixture(scope="module")
def pool() -> Iterator[LocalPool]:
    with LocalPool("xla") as opened:
        yield opened


def runs(text: str, level: str) -> tuple[Run, Run]:
    item = case_of(text)
    return Run(item, "xla", Build("off")), Run(item, "xla", Build(level, transform=BATCHED))


@pytest.mark.parametrize("level", ["off", "full"])
@pytest.mark.parametrize("text", [RECURRENT, LARGEST, MIXED])
def test_the_first_row_is_the_programs_own_result(pool: LocalPool, text: str, level: str) -> None:
    both = runs(text, level)
    outcomes = pool.run(both)
    assert all(isinstance(one, Values) for one in outcomes), outcomes
    assert isinstance(conclude(both, outcomes, Optimisation("xla"), pool).verdict, Holds)


def test_another_row_would_be_a_finding(pool: LocalPool) -> None:
    both = runs(MIXED, "full")
    plain, other = pool.run(both)
    assert isinstance(other, Values)
    row = other.results[0]
    assert row[1] is not None
    flipped = Tensor(row[1].dtype, np.flip(row[1].array))
    moved = Values(((row[0], flipped, row[2]), *other.results[1:]), other.observations)
    assert isinstance(conclude(both, [plain, moved], Optimisation("xla"), pool).verdict, Violated)


@pytest.mark.parametrize("alike", [False, True])
def test_a_script_maps_the_program_as_well(alike: bool, tmp_path: Path) -> None:
    held, faulty = runs(MIXED, "full")
    if alike:
        held = Run(held.case, "xla", Build("O0", transform=BATCHED))
    details = {"allowed": 1e-3, "difference": 1.0, "output": 0, "feed": 0}
    path = tmp_path / "repro.py"
    path.write_text(write_script(held.case, Evidence("wrong", "fixed", "a line", faulty, held, "y", details)), "utf-8")
    text = path.read_text("utf-8")
    assert "def batched" in text
    done = run_script(path)
    assert done.code == 0, (done, text)
    assert "the bug does not show" in done.stdout
