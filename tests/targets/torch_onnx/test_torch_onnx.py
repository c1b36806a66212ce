"""PyTorch's exporters as a target: the contract of both, refusals, and steps that are switched off."""

import importlib.util

import numpy as np
import onnx
import pytest

from miscompile.core.case import Case, Program
from miscompile.core.outcome import Outcome, Rejected, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import tensor
from miscompile.execution.conformance import check_target
from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool
from miscompile.graph.emit import to_program
from miscompile.graph.read import read
from miscompile.targets.torch_onnx.names import TRACED

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


TRACER = "torch_onnx{exporter=torchscript}"

NEGATIVE = (
    """g (float[2,3,1] x) => (float[2,1,1] y) <int64[2,1,1] k = {-3, 0}> { y = GatherND<batch_dims = 1>(x, k) }"""
)
ROUNDED_UP = """g (float[1,1,5] x) => (float[1,1,2] y) {
    y = MaxPool<kernel_shape = [4], strides = [3], auto_pad = "SAME_LOWER">(x) }"""
CHAIN = """g (float[2,6] x, float[6,3] w) => (float[3,2] y) <float[3] b = {1, 2, 3}> {
    a = MatMul(x, w) c = Add(a, b) d = Relu(c) y = Transpose(d) }"""


def program_of(text: str) -> Program:
    model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 18]> ' + text)
    return to_program(read(model.SerializeToString()))


def outcomes(target: str, text: str, *builds: Build) -> list[Outcome]:
    program = program_of(text)
    shapes = [[int(size or 0) for size in port.shape or ()] for port in program.inputs]
    feed = tuple(tensor(np.arange(np.prod(shape), dtype=np.float32).reshape(shape)) for shape in shapes)
    with LocalPool(target, limits=Limits(seconds=60)) as pool:
        return pool.run([Run(Case(program, (feed,)), target, build) for build in builds])


def results(outcome: Outcome) -> list[np.ndarray]:
    assert isinstance(outcome, Values), outcome
    return [value.array for value in outcome.results[0] if value is not None]


@needs_exporters
@pytest.mark.compiler
@pytest.mark.process
def test_a_model_that_its_exporter_calls_incorrect_is_refused() -> None:
    plain, exported = outcomes(TRACER, NEGATIVE, Build("off"), Build("full"))
    assert isinstance(exported, Rejected), exported
    assert np.array_equal(results(plain)[0].ravel(), [0, 3])


@needs_exporters
@pytest.mark.compiler
@pytest.mark.process
def test_sizes_that_are_traced_are_rounded_up() -> None:
    plain, exported = outcomes(TRACER, ROUNDED_UP, Build("off"), Build("full"))
    assert np.array_equal(results(plain)[0].ravel(), [2, 4])
    assert np.array_equal(results(plain)[0], results(exported)[0])


@needs_exporters
@pytest.mark.compiler
@pytest.mark.process
def test_no_model_needs_a_pass_that_can_be_switched_off() -> None:
    builds = [Build("full", frozenset({name})) for name in TRACED]
    plain, *exported = outcomes(TRACER, CHAIN, Build("off"), *builds, Build("full", frozenset(TRACED)))
    for name, outcome in zip((*TRACED, "all"), exported, strict=True):
        assert np.allclose(results(plain)[0], results(outcome)[0]), name
