"""Calls that break a rule of their operator's page are refused, although onnx's inference lets them pass."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from miscompile.core.tensor import Array
from miscompile.graph.attributes import PlainValue, attributes
from miscompile.ops.facts import Facts, measure
from miscompile.ops.page_rules import broadcasts_to, different_axes
from miscompile.ops.registry import specs, well_formed
from miscompile.ops.spec import Call, Operand

EvaluatedCall = tuple[int, ...] | list[int] | float | None
"""A shape; or a list, the elements of a known int64 vector; or a number, a known scalar; or nothing."""


def call(
    op: str, given: Sequence[EvaluatedCall], settings: Mapping[str, PlainValue | None] | None = None, outputs: int = 1
) -> Call:
    return Call(op, tuple(map(operand, range(len(given)), given)), attributes(settings or {}), outputs)


def operand(place: int, given: EvaluatedCall) -> Operand | None:
    if given is None:
        return None
    if isinstance(given, tuple):
        return Operand(f"x{place}", "float32", given, Facts(1.0, 2.0))
    value: Array = np.asarray(given, np.int64 if isinstance(given, list) else np.float32)
    return Operand(f"c{place}", value.dtype.name, value.shape, measure(value), value)


FINE: list[tuple[str, Sequence[EvaluatedCall], Mapping[str, PlainValue | None], int]] = [
    ("EyeLike", [(2, 3)], {}, 1),
    ("MatMul", [(3,), (2, 3, 1)], {}, 1),
    ("Clip", [(2, 3), (), ()], {}, 1),
    ("Clip", [(2, 3), None, ()], {}, 1),
    ("PRelu", [(2, 3), (3,)], {}, 1),
    ("Dropout", [(2,), 0.5], {}, 1),
    ("Transpose", [(2, 3)], {"perm": (1, 0)}, 1),
    ("Unsqueeze", [(2, 3), [1, -1]], {}, 1),
    ("Squeeze", [(1, 1, 3), [0, -2]], {}, 1),
    ("Reshape", [(0, 3), [0, 3]], {}, 1),
    ("Reshape", [(4, 3), [2, -1]], {}, 1),
    ("Reshape", [(0, 3), [3, 0]], {"allowzero": 1}, 1),
    ("Split", [(5, 2), [2, 3]], {}, 2),
    ("Split", [(5, 2)], {"num_outputs": 3}, 3),
    ("Tile", [(2, 3), [1, 0]], {}, 1),
    ("DepthToSpace", [(1, 8, 2, 2)], {"blocksize": 2}, 1),
    ("SpaceToDepth", [(1, 8, 2, 4)], {"blocksize": 2}, 1),
    ("Slice", [(4, 5), [0], [2], [-1], [2]], {}, 1),
    ("Slice", [(4, 5), [0, 1], [2, 2]], {}, 1),
    ("Pad", [(4, 5), [0, 1, 0, 1], ()], {}, 1),
    ("Pad", [(4, 5), [0, 1], None, [-1]], {}, 1),
    ("Gemm", [(2, 3), (3, 4), (2, 1)], {}, 1),
    ("Gemm", [(3, 2), (4, 3), ()], {"transA": 1, "transB": 1}, 1),
    ("Einsum", [(2, 5, 3), (3, 4)], {"equation": "b...j,jk->b...k"}, 1),
    ("MatMulInteger", [(2, 3), (3, 4), (2,), (4,)], {}, 1),
    ("MatMulInteger", [(5, 2, 3), (5, 3, 4), (5, 2, 1), (5, 1, 4)], {}, 1),
    ("QLinearMatMul", [(2, 3), (), (), (3, 4), (4,), (4,), (), ()], {}, 1),
    ("Conv", [(1, 4, 5, 5), (6, 2, 3, 3), (6,)], {"group": 2, "kernel_shape": (3, 3)}, 1),
    ("ConvTranspose", [(1, 4, 5, 5), (4, 3, 3, 3), (6,)], {"group": 2}, 1),
    ("ConvInteger", [(1, 4, 5, 5), (6, 4, 3, 3), (), (6,)], {}, 1),
    ("QLinearConv", [(1, 2, 5), (), (), (3, 2, 2), (3,), (3,), (), (), (3,)], {}, 1),
    ("MaxPool", [(1, 4, 5, 5)], {"kernel_shape": (2, 2), "auto_pad": "SAME_UPPER"}, 1),
    ("GlobalAveragePool", [(1, 4, 5)], {}, 1),
    ("QuantizeLinear", [(2, 3), (), ()], {"axis": 7}, 1),
    ("QuantizeLinear", [(2, 3), (3,), (3,)], {}, 1),
    ("DequantizeLinear", [(2, 5), (2, 3), (2, 3)], {"axis": -1, "block_size": 2}, 1),
    ("BatchNormalization", [(2, 3, 4), (3,), (3,), (3,), (3,)], {}, 1),
    ("GroupNormalization", [(2, 6, 4), (6,), (6,)], {"num_groups": 3}, 1),
    ("LayerNormalization", [(2, 3, 4), (3, 4), (4,)], {"axis": 1}, 1),
    ("LayerNormalization", [(2, 3, 4), (1, 3, 4)], {"axis": 1}, 1),
    ("Softmax", [(2, 3)], {"axis": -2}, 1),
    ("Flatten", [(2, 3)], {"axis": 2}, 1),
    ("TopK", [(2, 3), [2]], {}, 2),
    ("ReduceSum", [(2, 3), [0, -1]], {"keepdims": 0}, 1),
]

BROKEN: list[tuple[str, Sequence[EvaluatedCall], Mapping[str, PlainValue | None], int]] = [
    ("EyeLike", [(3,)], {}, 1),
    ("EyeLike", [(1, 2, 3)], {}, 1),
    ("MatMul", [(), (3, 1)], {}, 1),
    ("Clip", [(2, 3), (1,), ()], {}, 1),
    ("Clip", [(2, 3), None, (1, 1)], {}, 1),
    ("PRelu", [(3,), (2, 3)], {}, 1),
    ("Dropout", [(2,), 1.0], {}, 1),
    ("Dropout", [(2,), (1,)], {}, 1),
    ("Transpose", [(2, 3)], {"perm": (1, 0, 2)}, 1),
    ("Transpose", [(2, 3)], {"perm": (0, 0)}, 1),
    ("Unsqueeze", [(), [1, -1]], {}, 1),
    ("Squeeze", [(1, 3), [0, -2]], {}, 1),
    ("Reshape", [(0, 3), [0, -1]], {}, 1),
    ("Reshape", [(4, 3), [5, -1]], {}, 1),
    ("Reshape", [(4, 3), [3, 5]], {}, 1),
    ("Reshape", [(0, 3), [0, -1]], {"allowzero": 1}, 1),
    ("Split", [(5, 2), [2, 2]], {}, 2),
    ("Split", [(5, 2)], {"num_outputs": 4}, 3),
    ("Split", [(5, 2)], {}, 2),
    ("Tile", [(2, 3), [1]], {}, 1),
    ("DepthToSpace", [(1, 6, 2, 2)], {"blocksize": 2}, 1),
    ("SpaceToDepth", [(1, 8, 2, 3)], {"blocksize": 2}, 1),
    ("Slice", [(4, 5), [0, 0], [2, 2], [1, -1]], {}, 1),
    ("Slice", [(4, 5), [0], [2]], {}, 1),
    ("Slice", [(4, 5), [0], [2], [0], [0]], {}, 1),
    ("Pad", [(4, 5), [0, 1, 0, 1], (1,)], {}, 1),
    ("Pad", [(4, 5), [0, 1]], {}, 1),
    ("Gemm", [(2, 3), (3, 4), (3,)], {}, 1),
    ("Gemm", [(2, 3), (3, 4), (1, 2, 4)], {}, 1),
    ("Gemm", [(2, 3), (4, 3)], {}, 1),
    ("Gemm", [(2, 3), (3, 4)], {"transA": 2}, 1),
    ("Einsum", [(2, 3), (4, 5)], {"equation": "ij,jk->ik"}, 1),
    ("MatMulInteger", [(2, 3), (3, 4), (3,)], {}, 1),
    ("MatMulInteger", [(5, 2, 3), (3, 4), (2,)], {}, 1),
    ("QLinearMatMul", [(2, 3), (), (), (3, 4), (4,), (), (), ()], {}, 1),
    ("Conv", [(1, 4, 5, 5), (6, 2, 3, 3)], {}, 1),
    ("Conv", [(1, 4, 5, 5), (6, 4, 3, 3), (1,)], {}, 1),
    ("Conv", [(1, 4, 5, 5), (6, 4, 3, 3)], {"kernel_shape": (2, 2)}, 1),
    ("Conv", [(1, 4, 5, 5), (6, 4, 3, 3)], {"strides": (1, 1, 1)}, 1),
    ("Conv", [(1, 4, 5, 5), (5, 2, 3, 3)], {"group": 2}, 1),
    ("Conv", [(1, 4, 5, 5), (6, 4, 3, 3)], {"auto_pad": "VALID", "pads": (1, 1, 1, 1)}, 1),
    ("ConvTranspose", [(1, 4, 5, 5), (3, 4, 3, 3)], {}, 1),
    ("ConvInteger", [(1, 4, 5, 5), (6, 4, 3, 3), (1,)], {}, 1),
    ("QLinearConv", [(1, 2, 5), (1,), (1,), (3, 2, 2), (), (), (), ()], {}, 1),
    ("MaxPool", [(1, 4, 5, 5)], {"kernel_shape": (2,)}, 1),
    ("GlobalAveragePool", [(3, 6)], {}, 1),
    ("GlobalMaxPool", [(3, 6)], {}, 1),
    ("GlobalLpPool", [(3, 6)], {}, 1),
    ("QuantizeLinear", [(2, 3), (2,), (2,)], {}, 1),
    ("QuantizeLinear", [(2, 3), (3,), ()], {}, 1),
    ("QuantizeLinear", [(2,), (2,)], {"axis": 1}, 1),
    ("DequantizeLinear", [(2, 5), (2, 2)], {"axis": 1, "block_size": 2}, 1),
    ("BatchNormalization", [(2, 3, 4), (3,), (1,), (3,), (3,)], {}, 1),
    ("GroupNormalization", [(2, 6, 4), (3,), (3,)], {"num_groups": 3}, 1),
    ("LayerNormalization", [(2, 3, 4), (2, 3, 4)], {"axis": 1}, 1),
    ("Softmax", [(2, 3)], {"axis": 2}, 1),
    ("TopK", [(2, 3), [4]], {}, 2),
    ("ReduceSum", [(2, 3), [1, -1]], {}, 1),
    ("ReduceSum", [(2, 3)], {"keepdims": -1}, 1),
]


@pytest.mark.parametrize(("op", "given", "settings", "outputs"), FINE)
def test_a_call_by_the_page_is_well_formed(
    op: str, given: Sequence[EvaluatedCall], settings: Mapping[str, PlainValue | None], outputs: int
) -> None:
    assert well_formed(call(op, given, settings, outputs))


@pytest.mark.parametrize(("op", "given", "settings", "outputs"), BROKEN)
def test_a_call_against_the_page_is_refused_by_the_guard_of_its_spec(
    op: str, given: Sequence[EvaluatedCall], settings: Mapping[str, PlainValue | None], outputs: int
) -> None:
    made = call(op, given, settings, outputs)
    assert not well_formed(made)
    assert not specs()[op].defined(made)


def test_foreign_domains_and_operators_without_a_rule_pass() -> None:
    odd = call("Clip", [(2, 3), (1,)])
    assert well_formed(Call(odd.op, odd.inputs, domain="com.example"))
    assert well_formed(call("Relu", [(2, 3)]))


def test_unknown_elements_pass() -> None:
    assert well_formed(call("Reshape", [(4, 3), (2,)]))
    assert well_formed(call("ReduceSum", [(4, 3), (2,)]))


def test_broadcasting_in_one_direction_agrees_with_numpy() -> None:
    for shape in ((), (1,), (3,), (2, 3), (1, 3), (2, 1), (1, 2, 3), (4,)):
        try:
            agrees = np.broadcast_shapes(shape, (2, 3)) == (2, 3)
        except ValueError:
            agrees = False
        assert broadcasts_to(shape, (2, 3)) == agrees


def test_axes_are_compared_from_the_front() -> None:
    assert different_axes((0, -1), 2)
    assert not different_axes((1, -1), 2)
    assert not different_axes((2,), 2)
