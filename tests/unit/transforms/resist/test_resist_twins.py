"""Twins of generated models are valid, and give the same bits where nothing is optimised."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as Unsupported
from resist_models import BODIES, assert_twins_agree, made, program, run, twin

from miscompile.base.dtypes import is_float
from miscompile.base.rng import array_stream, stream
from miscompile.core.case import Case, Feed
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.check import check
from miscompile.graph.emit import emit
from miscompile.graph.model import Model
from miscompile.graph.read import read
from miscompile.ops.support import Support
from miscompile.producers.options import GeneratorOptions
from miscompile.producers.strict import Strict
from miscompile.transforms.resist.config import embedded
from miscompile.transforms.resist.strategies import STRATEGIES
from miscompile.transforms.resist.transform import Resistant, sites

pytestmark = pytest.mark.compiler

DTYPES = ("float32", "float64", "int64", "int32", "int8", "uint8", "bool")
"""Without 16-bit floats, which ONNX Runtime computes in float32 from border to border."""

LENIENT = (
    "Abs", "Add", "And", "ArgMax", "Cast", "Ceil", "Clip", "Concat", "Conv", "Cos", "Div", "Dropout", "Equal", "Exp",
    "Expand", "Flatten", "Floor", "Gather", "Gemm", "Greater", "Identity", "LeakyRelu", "Less", "LogSoftmax", "MatMul",
    "Max", "MaxPool", "Min", "Mul", "Neg", "Not", "Or", "Pad", "Pow", "ReduceMax", "ReduceMean", "ReduceSum", "Relu",
    "Reshape", "Round", "Shape", "Sigmoid", "Slice", "Softmax", "Split", "Sqrt", "Squeeze", "Sub", "Tanh", "Tile",
    "Transpose", "Unsqueeze", "Where", "Xor",
)  # fmt: skip
"""Operators for which ONNX Runtime has kernels of many types."""

PLAIN_FLOATS = (
    "Abs", "Add", "Concat", "Div", "Exp", "Expand", "Flatten", "Floor", "Identity", "LeakyRelu", "Mul", "Neg", "Relu",
    "Reshape", "Sigmoid", "Slice", "Sqrt", "Squeeze", "Sub", "Tanh", "Tile", "Transpose", "Unsqueeze",
)  # fmt: skip
"""Operators that are defined for NaN and infinities, element by element."""


def drawn(options: GeneratorOptions, count: int, name: str) -> list[tuple[Model, Case]]:
    producer = Strict(options, Support(open=True))
    cases = [producer.propose(stream(7, name, number)) for number in range(count)]
    return [(read(case.program.payload), case) for case in cases]


def runs(model: Model, feed: Feed) -> bool:
    """Tell whether ONNX Runtime has a kernel for everything in `model`."""
    try:
        run(program(model), feed)
    except (Unsupported, Fail, InvalidArgument):
        return False
    return True


@pytest.mark.slow  # hundreds of models
def test_generated_models_and_their_twins_agree_to_the_bit() -> None:
    """In exact arithmetic, because a weight that is no constant any more may meet another kernel, which rounds."""
    options = GeneratorOptions(
        nodes=8, ops=LENIENT, dtypes=DTYPES, opsets=tuple(range(13, 24)), integral=1.0, variants=1
    )
    pairs = [(kind, name) for kind in embedded().classes for name in STRATEGIES]
    met: Counter[tuple[str, str]] = Counter()
    compared = rounded = 0
    for number, (model, case) in enumerate(drawn(options, 220, "twins")):
        forms = [Resistant(number), Resistant(number, share=0.4)]
        forms += [
            Resistant(number, classes=kind, strategies=name, exactness="rounding")
            for kind, name in pairs[number % 12 :: 12]
            if name not in ("where", "matmul")
        ]
        found = [(form, other) for form in forms if (other := twin(model, form)) is not None]
        met.update((site.kind, site.strategy) for form, _ in found for site in sites(model, form))
        for _, other in found[: 3 + number % 3]:
            check(other)
        assert_same_face(model, [other for _, other in found])
        if found and runs(model, case.feeds[0]):
            compared += len(found)
            rounded += assert_twins_agree(model, [other for _, other in found], case.feeds[0], rounded=True)
    assert compared > 1000
    assert rounded <= 5
    assert len(met) > 120


def assert_same_face(model: Model, twins: list[Model]) -> None:
    for other in twins:
        assert other.graph.inputs == model.graph.inputs
        assert other.graph.outputs[: len(model.graph.outputs)] == model.graph.outputs
        assert (other.opsets, other.functions) == (model.opsets, model.functions)


def test_nan_and_infinities_pass_through() -> None:
    options = GeneratorOptions(
        nodes=6, ops=PLAIN_FLOATS, dtypes=("float32", "float64"), variants=1, control=0.0, motifs=0.0
    )
    compared = 0
    for number, (model, case) in enumerate(drawn(options, 60, "special")):
        feed = tuple(salted(value, number) for value in case.feeds[0])
        twins = [twin(model, Resistant(number + step)) for step in range(3)]
        found = [other for other in twins if other is not None]
        if runs(model, feed):
            compared += len(found)
            assert_twins_agree(model, found, feed)
    assert compared > 120


def salted(value: Tensor, number: int) -> Tensor:
    """Return `value` with special elements in random places."""
    if not is_float(value.dtype):
        return value
    rng = array_stream(number, "salt")
    array = value.array.copy()
    chosen = rng.random(array.shape) < 0.3
    array[chosen] = rng.choice([np.nan, np.inf, -np.inf, -0.0, 0.0], array.shape)[chosen]
    return tensor(array, value.dtype)


@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name not in ("where", "matmul")])
def test_bodies_are_left_as_they_are_and_read_what_they_did(strategy: str) -> None:
    model = made(BODIES)
    feed = (tensor(np.array([[-1.5, np.nan, -0.0], [3.0, np.inf, -4.0]], np.float32)), tensor(np.array(True)))
    for choice in (True, False):
        other = twin(model, Resistant(strategies=strategy))
        assert other is not None
        check(other)
        assert bodies_of(model) <= bodies_of(other)
        assert_twins_agree(model, [other], (feed[0], tensor(np.array(choice))))


def bodies_of(model: Model) -> Counter[str]:
    """Return the operators of each body, as texts."""
    bodies = [body for node in model.graph.nodes for body in node.subgraphs()]
    return Counter(f"{body.name}: {' '.join(node.op for node in body.nodes)}" for body in bodies)


def test_a_barrier_by_identity_matrix_is_exact_for_numbers() -> None:
    model = made("ir 8 opset 17 graph g(%x: float32[2,3], %s: float64[]) -> (%y: float32[2,3], %t: float64[]) {"
                 " %a = Neg(%x) %y = Exp(%a) %b = Abs(%s) %t = Neg(%b) }")  # fmt: skip
    other = twin(model, Resistant(strategies="matmul", exactness="rounding"))
    assert other is not None
    assert {site.strategy for site in sites(model, Resistant(strategies="matmul", exactness="rounding"))} == {"matmul"}
    check(other)
    values = np.array([[-1.5, 2.0, 1e-40], [3.0, 0.0, -4.0]], np.float32)
    assert_twins_agree(model, [other], (tensor(values), tensor(np.array(-2.5))), zeros=True)


def test_the_seed_and_the_model_decide_alone() -> None:
    model = made(BODIES)
    form = Resistant(3, share=0.7)
    first, second = twin(model, form), twin(model, replace(form))
    assert first is not None
    assert second is not None
    assert emit(first) == emit(second)
    assert len({str(sites(model, Resistant(seed))) for seed in range(20)}) > 5
