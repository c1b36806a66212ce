"""LiteRT as a target: the contract, all kernels against another runtime, and scripts."""

import importlib.util
from pathlib import Path

import pytest
from lowered_models import MODELS, assert_agreement, assert_script_shows_nothing

from miscompile.core.run import Build
from miscompile.execution.conformance import check_target
from miscompile.execution.pool import LocalPool
from miscompile.targets.litert.names import DELEGATE, PASSES

needs_litert = pytest.mark.skipif(
    importlib.util.find_spec("ai_edge_litert") is None, reason="ai-edge-litert is not installed"
)

OWN = {
    "depthwise": "g (float[2,3,5] x, float[6,1,3] w) => (float[2,6,3] y) { y = Conv<group = 3>(x, w) }",
    "slices": """g (float[4,5] x) => (float[2,5] y, float[4,3] z) <int64[2] s = {-1, 9}, int64[2] e = {-9, -9},
        int64[2] t = {-2, -1}, int64[1] u = {1}, int64[1] v = {4}> {
        y = Slice(x, s, e, , t)  z = Slice(x, u, v, u) }""",
    "reductions": """g (float[3,4] x) => (float[1,4] y, int64[3] z, float[3,2] v, float[3,4] c)
        <int64[1] a = {0}, int64[1] k = {2}, int64 b = {1}> {
        y = ReduceMean(x, a)  z = ArgMax<axis = 1, keepdims = 0>(x)
        v, p = TopK(x, k)  c = CumSum<reverse = 1>(x, b) }""",
    "scalars": "g (float x) => (float y) { t = Transpose(x)  y = Add(t, t) }",
}

SHARED = ("layers", "products", "softmax")


@needs_litert
@pytest.mark.compiler
@pytest.mark.process
def test_the_target_keeps_the_contract() -> None:
    check_target("litert", LocalPool)


@needs_litert
@pytest.mark.compiler
@pytest.mark.process
@pytest.mark.parametrize("name", [*SHARED, *OWN])
def test_all_kernels_agree_with_another_runtime(name: str) -> None:
    builds = (Build("off"), Build("builtin"), Build("full"), Build("full", frozenset(PASSES)))
    assert_agreement("litert", {**MODELS, **OWN}[name], builds)


@needs_litert
@pytest.mark.compiler
@pytest.mark.process
@pytest.mark.parametrize("culprits", [(), (DELEGATE,)])
def test_a_script_runs_and_says_that_there_is_no_bug(culprits: tuple[str, ...], tmp_path: Path) -> None:
    assert_script_shows_nothing("litert", culprits, tmp_path)
