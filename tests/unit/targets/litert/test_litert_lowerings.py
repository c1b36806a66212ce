"""Lowerings to LiteRT's operators without LiteRT: the shapes and types that they compute are those of the standard."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
import pytest

from miscompile.base.errors import RejectedDraft
from miscompile.graph.model import Model, TensorType
from miscompile.graph.read import read
from miscompile.ops.draws import Draw, draw_call
from miscompile.ops.registry import admitted, specs
from miscompile.targets.litert import tensors
from miscompile.targets.litert.program import LOWERINGS, program
from miscompile.targets.litert.tensors import LiteCall, LiteValue, tensor
from miscompile.targets.lowering.table import load

OPSET = 18


def lowered(model: Model, inputs: list[LiteValue]) -> list[LiteValue]:
    """Return the symbolic results of a model."""
    text = program(model)
    space: dict[str, Any] = {"np": np, "math": math, **vars(tensors)}
    space |= {name: tensor(value.array, value.dtype) for name, value in text.constants.items()}
    exec(compile(text.source, "program.py", "exec"), space)
    return list(space["program"](*inputs))


def model_of(text: str) -> Model:
    return read(onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]>{text}').SerializeToString())


def codes(value: LiteValue) -> list[str]:
    """Return the operators that compute a value from an input, the first one first."""
    found: list[str] = []
    while isinstance(value.call, LiteCall):
        found.insert(0, value.call.code)
        value = next((one for one in value.call.operands if one.array is None), value.call.operands[0])
    return found


def draws_of(op: str) -> Iterator[Draw]:
    spec = specs()[op]
    for dtype in ("float32", "int32", "bool"):
        for index in range(4 if dtype in spec.dtypes and dtype in admitted(spec, OPSET) else 0):
            try:
                yield draw_call(spec, dtype, OPSET, seed=1, index=index)
            except RejectedDraft:
                continue


@pytest.mark.parametrize("op", sorted(set(load(LOWERINGS).operators) & set(specs())))
def test_results_have_the_standard_s_shapes_and_types(op: str) -> None:
    for draw in draws_of(op):
        model = draw.model()
        kinds = [info.type for info in model.graph.inputs]
        inputs = [
            LiteValue(tuple(int(size) for size in kind.shape or ()), kind.dtype)  # type: ignore[arg-type]
            for kind in kinds
            if isinstance(kind, TensorType)
        ]
        try:
            results = lowered(model, inputs)
        except NotImplementedError:
            continue
        wanted = [(tuple(kind.shape or ()), kind.dtype) for kind in draw.types]
        assert [(one.shape, one.dtype) for one in results] == wanted, draw


def test_a_convolution_stands_between_transpositions() -> None:
    model = model_of(
        "g (float[1,2,5,5] x, float[3,2,3,3] w) => (float[1,3,5,5] y) { y = Conv<pads = [1, 1, 1, 1]>(x, w) }"
    )
    (y,) = lowered(model, [LiteValue((1, 2, 5, 5), "float32"), LiteValue((3, 2, 3, 3), "float32")])
    assert codes(y) == ["PADV2", "TRANSPOSE", "CONV_2D", "TRANSPOSE"]
    assert y.shape == (1, 3, 5, 5)


def test_a_slice_backwards_ends_before_the_first_element() -> None:
    model = model_of("""g (float[4] x) => (float[4] y)
        <int64[1] s = {-1}, int64[1] e = {-9}, int64[1] a = {0}, int64[1] t = {-1}> { y = Slice(x, s, e, a, t) }""")
    (y,) = lowered(model, [LiteValue((4,), "float32")])
    assert y.shape == (4,)
    assert y.call is not None
    assert y.call.fields == {"endMask": 1}


def test_types_without_a_kernel_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="int8 has no lowering"):
        lowered(model_of("g (int8[2] x, int8[2] z) => (int8[2] y) { y = Add(x, z) }"), [LiteValue((2,), "int8")] * 2)
