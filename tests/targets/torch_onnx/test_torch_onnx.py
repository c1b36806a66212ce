"""PyTorch's exporters as a target: the contract of both, and steps that are seen and switched off."""

import importlib.util

import pytest

from miscompile.execution.conformance import check_target
from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool

needs_exporters = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "onnxscript")),
    reason="torch or onnxscript is not installed",
)


@needs_exporters
@pytest.mark.compiler
@pytest.mark.process
@pytest.mark.parametrize("target", ["torch_onnx", "torch_onnx{exporter=torchscript}", "torch_onnx{runtime=reference}"])
def test_the_target_keeps_the_contract(target: str) -> None:
    check_target(target, lambda spec: LocalPool(spec, limits=Limits(seconds=60)), alone=6)
