"""ExecuTorch as a target: the contract, programs against another runtime, and scripts."""

import importlib.util
from pathlib import Path

import pytest
from lowered_models import MODELS, assert_agreement, assert_script_shows_nothing

from miscompile.core.run import Build
from miscompile.execution.conformance import check_target
from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool
from miscompile.targets.executorch.names import PASSES

needs_executorch = pytest.mark.skipif(
    importlib.util.find_spec("executorch") is None, reason="executorch is not installed"
)

BROADCAST = """g (float[3,1,4] x, float[4] v) => (float[3,4,4] y, float[3,1,4] z)
    <float[1,4,1] c = {1, 2, 3, 4}, float s = {3}> { y = Sub(x, c)  d = Add(x, v)  z = Div(s, d) }"""


@needs_executorch
@pytest.mark.compiler
@pytest.mark.process
def test_the_target_keeps_the_contract() -> None:
    check_target("executorch", lambda spec: LocalPool(spec, limits=Limits(seconds=120)), alone=4)


@needs_executorch
@pytest.mark.compiler
@pytest.mark.process
@pytest.mark.parametrize("text", [*MODELS.values(), BROADCAST], ids=[*MODELS, "division"])
def test_all_options_agree_with_another_runtime(text: str) -> None:
    builds = (Build("off"), Build("kernels"), Build("full"), Build("full", frozenset(PASSES)))
    assert_agreement("executorch", text, builds)


@needs_executorch
@pytest.mark.compiler
@pytest.mark.process
@pytest.mark.parametrize("culprits", [(), ("ReLUConfig",)])
def test_a_script_runs_and_says_that_there_is_no_bug(culprits: tuple[str, ...], tmp_path: Path) -> None:
    assert_script_shows_nothing("executorch", culprits, tmp_path)
