"""ncnn as a target: the contract, networks against another runtime, and scripts."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from lowered_models import MODELS, assert_agreement, assert_script_shows_nothing

from miscompile.core.run import Build
from miscompile.execution.conformance import check_target
from miscompile.execution.pool import LocalPool
from miscompile.targets.ncnn.names import ACTIVATIONS, PASSES
from miscompile.targets.ncnn.tensors import emit, given, same

needs_ncnn = pytest.mark.skipif(importlib.util.find_spec("ncnn") is None, reason="ncnn is not installed")


@needs_ncnn
@pytest.mark.compiler
@pytest.mark.process
def test_the_target_keeps_the_contract() -> None:
    check_target("ncnn", LocalPool, empty=False)  # ncnn has no blobs without elements


@needs_ncnn
@pytest.mark.compiler
@pytest.mark.process
@pytest.mark.parametrize("name", MODELS)
def test_all_options_agree_with_another_runtime(name: str) -> None:
    assert_agreement("ncnn", MODELS[name], (Build("off"), Build("full"), Build("full", frozenset(PASSES))))


@needs_ncnn
@pytest.mark.compiler
@pytest.mark.process
@pytest.mark.parametrize("culprits", [(), (ACTIVATIONS,)])
def test_a_script_runs_and_says_that_there_is_no_bug(culprits: tuple[str, ...], tmp_path: Path) -> None:
    assert_script_shows_nothing("ncnn", culprits, tmp_path)


@needs_ncnn
def test_an_activation_becomes_a_parameter_unless_its_operand_has_another_reader() -> None:
    from miscompile.targets.ncnn.runner import network_of

    x = given((1, 2, 5, 5))
    convolved = emit("Convolution", [x.blob], (1, 1, 4, 4), {0: 1, 1: 2, 6: 8}, [(np.ones(8), 0)])
    active = same("ReLU", convolved, {0: 0.0})
    alone, plain = (network_of([x], [active], fused)[0] for fused in (True, False))
    both = network_of([x], [active, convolved], True)[0]
    assert " 9=1" in alone
    assert "ReLU" not in alone
    assert "ReLU" in plain
    assert "ReLU" in both
    assert "Split" in both


@needs_ncnn
def test_numbers_that_the_format_cannot_hold_are_refused() -> None:
    from miscompile.targets.ncnn.runner import words_of

    assert words_of({0: 3, 1: 0.5, 9: [1, 2]}) == "0=3 1=5.00000000e-01 -23309=2,1,2"
    with pytest.raises(NotImplementedError, match="not finite"):
        words_of({0: float("inf")})
