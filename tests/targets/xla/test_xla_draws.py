"""Random calls of every operator, against ONNX Runtime without optimisations and onnx's reference evaluator."""

import re
import warnings
from collections.abc import Iterator
from importlib.util import find_spec

import ml_dtypes
import numpy as np
import pytest

from miscompile.base.dtypes import DTYPES, is_float
from miscompile.base.errors import RejectedDraft
from miscompile.core.case import Case, Port, Program
from miscompile.core.outcome import Unsupported, Values
from miscompile.core.run import Build, Run
from miscompile.core.tensor import Array, Tensor
from miscompile.execution.limits import Limits
from miscompile.execution.pool import LocalPool
from miscompile.graph.emit import emit
from miscompile.graph.model import Model, TensorType, ValueInfo
from miscompile.ops.conformance import Unchecked, evaluate
from miscompile.ops.draws import Draw, draw_call
from miscompile.ops.registry import admitted, specs
from miscompile.targets.onnxruntime.about import ABOUT as RUNTIME

pytestmark = [
    pytest.mark.compiler,
    pytest.mark.process,
    pytest.mark.skipif(find_spec("jax") is None, reason="JAX is not installed here"),
]

OPSETS = (22, 18, 24, 13)
NEWEST = 28
"""For operators that came later."""
DRAWS = 3
SLACK = 64
"""Rounding errors that two sound ways to compute a call may lie apart, on the scale of the largest element."""

UNSUPPORTED = "as a constant only|element type (u?int[24]|float4e2m1|float8e8m0) has no lowering"

FOREIGN = (
    ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2,
    ml_dtypes.float8_e5m2fnuz,
)  # fmt: skip
"""Types that come widened."""

ROUGH = {"Resize", "GridSample", "GroupNormalization"}
"""Operators whose references round to float32 on the way, whatever the type."""

BLIND = {
    "LRN": "onnx.reference takes the number of images for that of channels",
    "GRU": "onnx.reference ignores lengths of sequences, activations and clip",
    "LSTM": "onnx.reference ignores lengths of sequences, activations, clip and input_forget",
    "RNN": "onnx.reference ignores lengths of sequences, activations and clip",
}
"""Operators that only ONNX Runtime can judge."""


@pytest.fixture(scope="module")
def pools() -> Iterator[tuple[LocalPool, LocalPool]]:
    with LocalPool("xla", limits=Limits(seconds=90.0)) as xla, LocalPool("onnxruntime") as runtime:
        yield xla, runtime


def draws(op: str) -> Iterator[Draw]:
    """Yield draws of an operator; types and opsets take turns, beginning with another type for each operator."""
    spec, start = specs()[op], sum(map(ord, op))
    opsets = OPSETS if spec.since <= max(OPSETS) else (NEWEST,)
    pairs = [(dtype, opset) for opset in opsets for dtype in admitted(spec, opset)]
    for index in range(DRAWS):
        dtype, opset = pairs[(start + 7 * index) % len(pairs)]
        try:
            yield draw_call(spec, dtype, opset, seed=1, index=index)
        except RejectedDraft:
            continue


def case_of(draw: Draw, ir_version: int) -> Case:
    model = draw.model()
    graph = model.graph
    inputs, outputs = (tuple(map(_port, side)) for side in (graph.inputs, graph.outputs))
    payload = emit(Model(graph, model.opsets, ir_version=ir_version))
    return Case(Program("onnx", payload, inputs, outputs), (tuple(draw.values[info.name] for info in graph.inputs),))


def _port(info: ValueInfo) -> Port:
    assert isinstance(info.type, TensorType)
    return Port(info.name, info.type.dtype, info.type.shape)


def references(draw: Draw, runtime: LocalPool) -> Iterator[list[Array | None]]:
    if draw.opset <= RUNTIME.max_opset:
        (outcome,) = runtime.run([Run(case_of(draw, RUNTIME.max_ir_version), "onnxruntime", Build("off"))])
        if isinstance(outcome, Values):
            yield [value.numbers() if value else None for value in outcome.results[0]]
    if draw.call.op not in BLIND:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                yield [_plain(value) for value in evaluate(draw)]
            except (Unchecked, AssertionError):
                return


def _plain(value: Array) -> Array:
    return value.astype(np.float32) if value.dtype in FOREIGN else value


def agrees(op: str, found: Tensor | None, wanted: Array | None) -> bool:
    assert found is not None
    numbers = found.numbers()
    if wanted is None or numbers.shape != wanted.shape or numbers.dtype != wanted.dtype:
        return False
    if not is_float(found.dtype):
        return np.array_equal(numbers, wanted)
    left, right = numbers.astype(np.float64), wanted.astype(np.float64)
    scale = np.abs(right[np.isfinite(right)]).max(initial=0)
    eps = max(DTYPES[found.dtype].eps, DTYPES["float32"].eps if op in ROUGH else 0)
    return np.allclose(left, right, SLACK * eps, SLACK * eps * scale / 4, equal_nan=True)


@pytest.mark.parametrize("op", specs())
def test_random_calls_agree_with_a_reference(op: str, pools: tuple[LocalPool, LocalPool]) -> None:
    xla, runtime = pools
    for draw in draws(op):
        (outcome,) = xla.run([Run(case_of(draw, 10), "xla", Build("O0"))])
        if isinstance(outcome, Unsupported):
            assert re.search(UNSUPPORTED, outcome.message)
            continue
        assert isinstance(outcome, Values), (draw.call, outcome)
        found = outcome.results[0]
        others = list(references(draw, runtime))
        good = [all(map(lambda a, b: agrees(op, a, b), found, wanted)) for wanted in others]
        assert not good or any(good), (draw.call, found, others)
