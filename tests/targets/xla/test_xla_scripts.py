"""Reproducers for XLA: they run on their own, with and without passes, also on types that numpy lacks."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from test_xla_passes import LARGEST, RECURRENT, case_of

from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence
from miscompile.targets.xla.about import ABOUT
from miscompile.triage.script import write_script

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed here"),
]

BRAIN = """g (bfloat16[2,3] x) => (bfloat16[2,3] y) <float[1] two = {2.0}> {
    b = CastLike(two, x) a = Mul(x, b) y = Tanh(a) }"""


def script(text: str, reference: Build, culprits: tuple[str, ...]) -> str:
    case = case_of(text)
    disabled = frozenset(ABOUT.passes) - set(culprits) if culprits else frozenset[str]()
    faulty, right = Run(case, "xla", Build("full", disabled)), Run(case, "xla", reference)
    details = {"allowed": 1e-3, "difference": 1.0, "output": 0, "feed": 0}
    evidence = Evidence("wrong", "fixed", "a line", faulty, right, "y", details)
    return write_script(case, evidence, culprits=culprits, versions={"jax": "0.99.0"})


@pytest.mark.parametrize(
    ("text", "reference", "culprits"),
    [
        (RECURRENT, Build("off"), ()),
        (LARGEST, Build("full", frozenset(ABOUT.passes)), ("algsimp",)),
        (BRAIN, Build("O0"), ("fusion",)),
    ],
)
def test_a_script_runs_and_says_that_there_is_no_bug(
    text: str, reference: Build, culprits: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "bug.py"
    path.write_text(script(text, reference, culprits))
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, path.read_text() + done.stdout + done.stderr
    assert "the bug does not show" in done.stdout


def test_a_script_imports_nothing_of_ours_and_reads_as_jax() -> None:
    text = script(RECURRENT, Build("off"), ())
    assert "miscompile" not in text
    assert "def gru(" in text
    assert "lax.scan(" in text
    compile(text, "bug.py", "exec")
