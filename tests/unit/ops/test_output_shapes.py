"""Output shapes by rule: what a rule says is what onnx infers, and where it is not sure it says nothing."""

from collections.abc import Sequence

import numpy as np
import pytest

from miscompile.base.errors import ModelError
from miscompile.core.tensor import Array, Tensor
from miscompile.graph.attributes import PlainValue, attributes
from miscompile.graph.infer import infer_call
from miscompile.graph.model import TensorType
from miscompile.ops.facts import Facts
from miscompile.ops.registry import specs
from miscompile.ops.shapes import promised_shapes
from miscompile.ops.spec import Call, Operand, Shape


def operand(given: Sequence[int] | Array | None, place: int) -> Operand | None:
    """Return an operand: of a shape, with known int64 elements, or none."""
    if given is None:
        return None
    if isinstance(given, np.ndarray):
        return Operand(f"c{place}", "int64", given.shape, Facts(-9, 9, integral=True), given)
    return Operand(f"x{place}", "float32", tuple(given), Facts(-1, 1))


def ints(*values: int) -> Array:
    """Return known elements."""
    return np.array(values, np.int64)


def call_of(op: str, inputs: Sequence[Sequence[int] | Array | None], outputs: int = 1, **given: PlainValue) -> Call:
    """Return a call on operands as `operand` makes them."""
    return Call(op, tuple(operand(x, place) for place, x in enumerate(inputs)), attributes(given), outputs)


def inferred(call: Call, opset: int) -> tuple[Shape, ...]:
    """Return the shapes that onnx infers. Raises ModelError."""
    known = {
        place: Tensor(x.dtype, x.value) for place, x in enumerate(call.inputs) if x is not None and x.value is not None
    }
    types = infer_call(
        call.op, opset, call.attributes, [x and TensorType(x.dtype, x.shape) for x in call.inputs], call.outputs, known
    )
    found = []
    for kind in types:
        assert isinstance(kind, TensorType)
        assert kind.shape is not None
        found.append(tuple(size for size in kind.shape if isinstance(size, int)))
    return tuple(found)


LAWFUL = [
    call_of("Transpose", [(2, 3, 4)]),
    call_of("Transpose", [(2, 3, 4)], perm=(1, 2, 0)),
    call_of("Reshape", [(2, 3, 4), ints(0, -1)]),
    call_of("Reshape", [(0, 3), ints(3, 0)], allowzero=1),
    call_of("Reshape", [(1, 1), np.zeros(0, np.int64)]),
    call_of("Flatten", [(2, 3, 4)], axis=-1),
    call_of("Flatten", [()], axis=0),
    call_of("Squeeze", [(1, 3, 1)]),
    call_of("Squeeze", [(1, 3, 1), ints(-1)]),
    call_of("Unsqueeze", [(3,), ints(-1, 0)]),
    call_of("Expand", [(3, 1), ints(2, 1, 4)]),
    call_of("Tile", [(2, 3), ints(2, 0)]),
    call_of("Concat", [(2, 3), (2, 0), (2, 1)], axis=-1),
    call_of("Split", [(7, 2)], outputs=3, num_outputs=3),
    call_of("Split", [(2, 7), ints(3, 4)], outputs=2, axis=-1),
    call_of("DepthToSpace", [(1, 8, 2, 3)], blocksize=2),
    call_of("SpaceToDepth", [(1, 2, 4, 6)], blocksize=2),
    call_of("Slice", [(5, 6), ints(-9, 4), ints(9, -(2**63)), None, ints(2, -2)]),
    call_of("Slice", [(5, 6), ints(9), ints(-3), ints(-1), ints(-1)]),
    call_of("Slice", [(0, 6), ints(1), ints(3)]),
    call_of("Pad", [(2, 3), ints(1, 0, -1, 2)]),
    call_of("Pad", [(2, 3), ints(1, 2), None, ints(-1)], mode="edge"),
    call_of("CenterCropPad", [(2, 3), ints(5)], axes=(-1,)),
    call_of("Gather", [(2, 3, 4), ints(1, 0)], axis=-2),
    call_of("GatherND", [(2, 3, 4), np.zeros((2, 1), np.int64)], batch_dims=1),
    call_of("ReduceSum", [(2, 3, 4), ints(-1, 0)], keepdims=0),
    call_of("ReduceSum", [(2, 3), np.zeros(0, np.int64)], noop_with_empty_axes=1),
    call_of("ReduceMax", [(2, 3)]),
    call_of("ArgMax", [(2, 3)], axis=-1, keepdims=0),
    call_of("TopK", [(2, 3), ints(2)], outputs=2),
    call_of("Shape", [(2, 3, 4)], start=-2),
    call_of("Shape", [(2, 3, 4)], start=2, end=1),
    call_of("MatMul", [(4,), (4,)]),
    call_of("MatMul", [(4,), (2, 4, 3)]),
    call_of("MatMul", [(5, 1, 2, 4), (3, 4, 6)]),
    call_of("MatMul", [(3, 2, 4), (4,)]),
    call_of("Gemm", [(2, 3), (4, 2), (4,)], transA=1, transB=1),
    call_of("Conv", [(1, 2, 7, 6), (4, 2, 3, 2)], auto_pad="SAME_LOWER", strides=(2, 2)),
    call_of("Conv", [(1, 2, 7), (4, 1, 3)], group=2, dilations=(2,), pads=(1, 0)),
    call_of("MaxPool", [(1, 2, 7, 6)], outputs=2, kernel_shape=(3, 2), strides=(2, 2), ceil_mode=1),
    call_of("GlobalAveragePool", [(1, 2, 7, 6)]),
]

BROKEN = [
    call_of("Transpose", [(2, 3)], perm=(0, 0)),
    call_of("Reshape", [(2, 3), ints(4, -1)]),
    call_of("Reshape", [(2, 3), ints(2, 3, 0)]),
    call_of("Flatten", [(2, 3)], axis=3),
    call_of("Flatten", [()]),
    call_of("Squeeze", [(2, 3), ints(0)]),
    call_of("Unsqueeze", [(3,), ints(0, -3)]),
    call_of("Expand", [(3,), ints(2)]),
    call_of("Tile", [(2, 3), ints(2)]),
    call_of("Concat", [(2, 3), (3, 3)], axis=1),
    call_of("Concat", [(2, 3), (2, 3)]),
    call_of("Split", [(7,), ints(3, 3)], outputs=2),
    call_of("DepthToSpace", [(1, 6, 2, 3)], blocksize=2),
    call_of("Slice", [(5,), ints(0), ints(3), ints(1)]),
    call_of("Slice", [(5,), ints(0), ints(3), ints(0), ints(0)]),
    call_of("Pad", [(2, 3), ints(1, 0, -4, 2)]),
    call_of("Gather", [(2, 3), ints(0)], axis=2),
    call_of("GatherND", [(2, 3), np.zeros((2, 3), np.int64)]),
    call_of("ReduceSum", [(2, 3), ints(0, -2)]),
    call_of("ArgMax", [(2, 3)], axis=2),
    call_of("TopK", [(2, 3), ints(4)], outputs=2),
    call_of("MatMul", [(4,), (3, 4)]),
    call_of("MatMul", [(), (3,)]),
    call_of("Gemm", [(2, 3), (4, 2)]),
    call_of("Conv", [(1, 2, 7), (4, 2, 9)]),
    call_of("Conv", [(1, 2, 7), (4, 2, 3)], kernel_shape=(2,)),
    call_of("MaxPool", [(1, 2, 7)]),
    call_of("MaxPool", [(1, 2, 7)], kernel_shape=(2, 2)),
]

UNKNOWN = [
    call_of("Reshape", [(2, 3), (2,)]),
    call_of("Slice", [(5,), (1,), (1,)]),
    call_of("Pad", [(5,), (2,)]),
    call_of("Expand", [(5,), (2,)]),
    call_of("ReduceSum", [(5,), (1,)]),
    call_of("Slice", [(5,), ints(-9), ints(-99), ints(0), ints(-1)]),
]


@pytest.mark.parametrize("call", LAWFUL, ids=lambda call: call.op)
def test_a_rule_says_what_inference_says(call: Call) -> None:
    assert promised_shapes(specs()[call.op], call) == inferred(call, 18)


@pytest.mark.parametrize("call", BROKEN, ids=lambda call: call.op)
def test_a_broken_call_gets_no_shape(call: Call) -> None:
    assert promised_shapes(specs()[call.op], call) is None


@pytest.mark.parametrize("call", UNKNOWN, ids=lambda call: call.op)
def test_what_depends_on_unknown_elements_is_left_to_inference(call: Call) -> None:
    assert promised_shapes(specs()[call.op], call) is None


def test_most_operators_of_the_generator_have_a_rule() -> None:
    without = {op for op, spec in specs().items() if spec.shapes == "inferred"}
    assert len(without) < len(specs()) / 4
    with pytest.raises(ModelError):
        inferred(call_of("Conv", [(1, 2), (4, 2)]), 18)
