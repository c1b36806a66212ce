"""Functions that XLA's adapter exports to StableHLO and reads again: they keep every bit, and scripts do the same."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from test_xla_passes import LARGEST, RECURRENT, case_of

from miscompile.base.specs import stored_spec
from miscompile.core.outcome import Outcome, Values
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence
from miscompile.execution.pool import LocalPool
from miscompile.triage.confirm import run_script
from miscompile.triage.script import write_script

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed here"),
]

RELOAD = stored_spec("reload{seed=3}")

BRANCHED = """g (float[2,3] x, bool s) => (float[2,3] y, bfloat16[2,3] z) {
    y = If(s) <
        then_branch = t () => (float[2,3] p) { p = Exp(x) },
        else_branch = e () => (float[2,3] q) { q = Neg(x) }
    >
    z = Cast<to = 16>(y)
}"""


def same(one: Outcome, other: Outcome) -> bool:
    return isinstance(one, Values) and isinstance(other, Values) and all(
        value is not None and twin is not None and value.same(twin)
        for values, twins in zip(one.results, other.results, strict=True)
        for value, twin in zip(values, twins, strict=True)
    )  # fmt: skip


@pytest.mark.parametrize("text", [RECURRENT, LARGEST, BRANCHED])
def test_an_exported_function_keeps_every_bit(text: str) -> None:
    item = case_of(text)
    builds = [Build(level, transform=transform) for level in ("off", "O0", "full") for transform in (None, RELOAD)]
    with LocalPool("xla") as pool:
        found = pool.run([Run(item, "xla", build) for build in builds])
    for plain, formed in zip(found[::2], found[1::2], strict=True):
        assert same(plain, formed), (plain, formed)


# A process that has compiled must not fork any more, so it is one of its own.
WATCHED = """
import json
import jax, numpy as np
from jax import export
from miscompile.targets.xla import runner
from miscompile.targets.xla.isolated_build import isolated

read, original = [], export.deserialize

def watched(blob):
    read.append(b"StableHLO" in bytes(blob))
    return original(blob)

export.deserialize = watched
x = np.linspace(-2.0, 2.0, 24, dtype=np.float32).reshape(4, 6)
function = lambda a: [a @ a.T, jax.nn.softplus(a)]
shapes = [jax.ShapeDtypeStruct(x.shape, x.dtype)]
builds = [
    isolated(function, shapes, runner.reloaded),
    isolated(function, shapes),
    runner.compile_function(runner.reloaded(function, shapes), shapes, "full", (), {}),
    runner.compile_function(function, shapes, "full", (), {}),
]
results = [[np.asarray(value) for value in build(x)] for build in builds]
alike = [all(map(np.array_equal, one, other)) for one, other in zip(results[::2], results[1::2])]
print(json.dumps({"read": read, "alike": alike}))
"""


def test_a_function_is_exported_and_read_again() -> None:
    done = subprocess.run([sys.executable, "-c", WATCHED], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"read": [True, True], "alike": [True, True]}


@pytest.mark.parametrize("level", ["off", "full"])
def test_a_script_does_the_same_in_a_process_of_its_own(level: str, tmp_path: Path) -> None:
    item = case_of(RECURRENT)
    faulty, held = Run(item, "xla", Build(level, transform=RELOAD)), Run(item, "xla", Build(level))
    details = {"allowed": 1e-3, "difference": 1.0, "output": 0, "feed": 0}
    path = tmp_path / "repro.py"
    path.write_text(write_script(item, Evidence("wrong", "fixed", "a line", faulty, held, "y", details)), "utf-8")
    assert "reloaded" in path.read_text("utf-8")
    done = run_script(path)
    assert done.code == 0, done
    assert "the bug does not show" in done.stdout
