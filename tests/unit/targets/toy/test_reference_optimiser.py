"""The reference optimiser is sound and large, and the toy without it is the same as before."""

import random
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from test_toy_passes import PATTERNS
from toy_bench import case, compute, fired, node
from toy_random import random_case

from miscompile.core.case import Case
from miscompile.core.run import Build
from miscompile.core.tensor import Array
from miscompile.graph.attributes import PlainValue, attributes
from miscompile.graph.model import Graph, Node, TensorType, ValueInfo
from miscompile.targets.registry import parse_target
from miscompile.targets.toy.about import ABOUT
from miscompile.targets.toy.ir import ToyUnsupported
from miscompile.targets.toy.passes.pipeline import PASSES
from miscompile.targets.toy.passes.reference import REFERENCE_PASSES

OFF, FULL = Build(level="off"), Build(level="full")
REFERENCE = "toy{optimiser=reference}"
NAMES = parse_target(REFERENCE).about.passes


def _f(*shape: int) -> Array:
    return (np.arange(int(np.prod(shape)), dtype=np.float32) - 4).reshape(shape)


def _chain(*ops: str, x: ArrayLike | None = None, **attributes: Mapping[str, PlainValue]) -> Case:
    """Model that applies unary `ops` one after the other."""
    nodes = [node(op, f"v{i}", f"v{i + 1}", **attributes.get(op, {})) for i, op in enumerate(ops)]
    return case(nodes, {"v0": _f(2, 3) if x is None else x}, f"v{len(ops)}")


_X = _f(2, 3)
_BOOLS = np.array([[True, False, True], [False, True, False]])
_BYTES = np.array([[-128, -3, 0], [4, 100, 127]], np.int8)
_UNSIGNED = np.array([1, 200, 255], np.uint8)


def _ints(*values: int) -> Array:
    return np.array(values, np.int64)


def _branch(*nodes: Node, outputs: str = "r") -> Graph:
    """Write a branch whose results are float32 matrices of 2 by 3."""
    ports = tuple(ValueInfo(name, TensorType("float32", (2, 3))) for name in outputs.split())
    return Graph("branch", (), ports, nodes)


def _if(condition: str, outputs: str, first: Graph, second: Graph) -> Node:
    return Node("If", (condition,), tuple(outputs.split()), attributes({"then_branch": first, "else_branch": second}))


_TWO = _branch(node("Neg", "x", "r"), node("Abs", "x", "s"), outputs="r s")
_SCALE: Mapping[str, ArrayLike] = {"s": np.float32(0.25), "z": np.int8(3)}

ADDED: dict[str, Case] = {
    "InvolutionElimination": _chain("Neg", "Neg"),
    "IdempotenceElimination": _chain("Floor", "Floor"),
    "SelfOperandElimination": case([node("Max", "x x", "a")], {"x": _X}, "a"),
    "NegatedOperand": case([node("Neg", "y", "a"), node("Sub", "x a", "b")], {"x": _X, "y": _X}, "b"),
    "ConstantReassociation": case(
        [node("Add", "x c", "a"), node("Add", "d a", "b")], {"x": _BYTES}, "b", {"c": np.int8(100), "d": np.int8(90)}
    ),
    "MulByMinusOne": case([node("Mul", "c x", "a")], {"x": _X}, "a", {"c": np.full((1, 3), -1, np.float32)}),
    "ClipMerging": case(
        [node("Clip", "x a b", "y"), node("Clip", "y c d", "z")], {"x": _X}, "z",
        {"a": np.float32(-3), "b": np.float32(1), "c": np.float32(-1), "d": np.float32(9)},
    ),
    "VariadicFlattening": case(
        [node("Max", "x y", "a"), node("Max", "z a", "b")], {"x": _BYTES, "y": _BYTES[:1], "z": _BYTES[:, :1]}, "b",
        opset=13,
    ),
    "MulToShift": case([node("Mul", "x c", "a")], {"x": _UNSIGNED}, "a", {"c": np.array([2, 4, 128], np.uint8)}),
    "ShiftMerging": case(
        [node("BitShift", "x c", "a", direction="LEFT"), node("BitShift", "a c", "b", direction="LEFT")],
        {"x": _UNSIGNED}, "b", {"c": np.array([3, 2, 0], np.uint8)},
    ),
    "ComparisonNegation": case(
        [node("Less", "x y", "a"), node("Not", "a", "b")], {"x": _BYTES, "y": _BYTES[:, :1]}, "b"
    ),
    "DeMorgan": case(
        [node("Not", "x", "a"), node("Not", "y", "b"), node("And", "a b", "c")], {"x": _BOOLS, "y": _BOOLS[:1]}, "c"
    ),
    "BooleanConstant": case([node("Or", "c x", "a")], {"x": _BOOLS[:1]}, "a", {"c": np.ones((2, 3), np.bool_)}),
    "WhereNegation": case(
        [node("Not", "c", "a"), node("Where", "a x y", "b")], {"c": _BOOLS, "x": _X, "y": 2 * _X}, "b"
    ),
    "WhereMerging": case(
        [node("Where", "c x y", "a"), node("Where", "c z a", "b")], {"c": _BOOLS, "x": _X, "y": -_X, "z": 3 * _X}, "b"
    ),
    "BranchSelection": case(
        [_if("c", "a", _branch(node("Neg", "x", "r")), _branch(node("Abs", "x", "r")))], {"x": _X}, "a",
        {"c": np.bool_(False)},
    ),
    "BranchMerging": case(
        [_if("c", "a", _branch(node("Neg", "x", "r")), _branch(node("Neg", "x", "s"), outputs="s"))],
        {"x": _X, "c": np.bool_(True)}, "a",
    ),
    "BranchNegation": case(
        [node("Not", "c", "n"), _if("n", "a", _branch(node("Neg", "x", "r")), _branch(node("Abs", "x", "r")))],
        {"x": _X, "c": np.bool_(True)}, "a",
    ),
    "BranchResultElimination": case([_if("c", "a b", _TWO, _TWO)], {"x": _X, "c": np.bool_(True)}, "b"),
    "CaptureElimination": case(
        [_if("c", "a", _branch(node("Sub", "x y", "d"), node("Neg", "x", "r")), _branch(node("Abs", "x", "r")))],
        {"x": _X, "y": _X, "c": np.bool_(True)}, "a",
    ),
    "ReduceTransposePushdown": case(
        [node("Transpose", "x", "a", perm=[2, 0, 1]), node("ReduceMax", "a s", "b", keepdims=1)],
        {"x": _f(2, 3, 4)}, "b", {"s": _ints(0)},
    ),
    "ConcatTransposePushdown": case(
        [node("Transpose", "x", "a", perm=[2, 0, 1]), node("Transpose", "y", "b", perm=[2, 0, 1]),
         node("Concat", "a b", "c", axis=1)],
        {"x": _f(2, 3, 4), "y": _f(1, 3, 4)}, "c",
    ),
    "TransposeToReshape": case([node("Transpose", "x", "a", perm=[1, 0, 2])], {"x": _f(3, 1, 4)}, "a"),
    "ConcatFlattening": case(
        [node("Concat", "x y", "a", axis=0), node("Concat", "y a", "b", axis=-2)], {"x": _X, "y": _X[:1]}, "b"
    ),
    "SliceElimination": case(
        [node("Slice", "x b e", "a"), node("Neg", "a", "c")], {"x": _X}, "c", {"b": _ints(0, -9), "e": _ints(2, 99)}
    ),
    "GatherToSlice": case([node("Gather", "x i", "a", axis=1)], {"x": _X}, "a", {"i": _ints(-2, 2)}),
    "GatherMerging": case(
        [node("Gather", "x i", "a", axis=1), node("Gather", "a j", "b", axis=1)], {"x": _X}, "b",
        {"i": _ints(2, 0, 2, 1), "j": _ints(3, -2)},
    ),
    "UnitReduction": case([node("ReduceSum", "x s", "a", keepdims=0)], {"x": _f(3, 1, 2)}, "a", {"s": _ints(1)}),
    "PadMerging": case(
        [node("Pad", "x p", "a"), node("Pad", "a q", "b")], {"x": _f(3)}, "b", {"p": _ints(1, 2), "q": _ints(0, 3)}
    ),
    "ExpandMerging": case(
        [node("Expand", "x p", "a"), node("Expand", "a q", "b")], {"x": _f(3)}, "b",
        {"p": _ints(2, 3), "q": _ints(4, 1, 1)},
    ),
    "TileMerging": case(
        [node("Tile", "x p", "a"), node("Tile", "a q", "b")], {"x": _X}, "b", {"p": _ints(2, 1), "q": _ints(1, 3)}
    ),
    "TileToExpand": case([node("Tile", "x p", "a")], {"x": _f(3, 1)}, "a", {"p": _ints(1, 4)}),
    "ConcatSplitElimination": case(
        [node("Concat", "x y", "a", axis=1), node("Split", "a s", "b c", axis=1), node("Sub", "b c", "d")],
        {"x": _f(2, 1), "y": _f(2, 3)}, "d", {"s": _ints(1, 3)},
    ),
    "SlicePushdown": case(
        [node("Neg", "x", "a"), node("Slice", "a b e", "c")], {"x": _X}, "c", {"b": _ints(1), "e": _ints(2)}
    ),
    "ZeroToExpand": case([node("Add", "x c", "a")], {"x": _f(3)}, "a", {"c": np.full((2, 3), -0.0, np.float32)}),
    "RequantisationElimination": case(
        [node("DequantizeLinear", "x s z", "a"), node("QuantizeLinear", "a s z", "b"), node("Neg", "b", "c")],
        {"x": _BYTES}, "c", _SCALE,
    ),
    "DequantisationSinking": case(
        [node("DequantizeLinear", "x s z", "a"), node("Transpose", "a", "b", perm=[1, 0])], {"x": _BYTES}, "b", _SCALE
    ),
    "QuantisedRelu": case(
        [node("Relu", "x", "a"), node("QuantizeLinear", "a s z", "b")], {"x": _X}, "b",
        {"s": np.array(0.25, np.float32), "z": np.array(0, np.uint8)},
    ),
    "QuantisedTable": case(
        [node("DequantizeLinear", "x s z", "a"), node("Sigmoid", "a", "b"), node("QuantizeLinear", "b t y", "c")],
        {"x": _BYTES}, "c", {**_SCALE, "t": np.float32(0.01), "y": np.uint8(7)},
    ),
    "GemmTranspose": case(
        [node("Transpose", "x", "a"), node("Gemm", "a y", "b", transB=1)], {"x": _X, "y": _f(4, 2)}, "b"
    ),
    "MatMulTranspose": case(
        [node("Transpose", "x", "a"), node("Transpose", "y", "b"), node("MatMul", "a b", "c")],
        {"x": _X, "y": _f(4, 2)}, "c",
    ),
    "MatMulScaleFolding": case(
        [node("MatMul", "x w", "a"), node("Mul", "a c", "b")], {"x": _X}, "b",
        {"w": _f(3, 2), "c": np.array([2, -3], np.float32)},
    ),
    "PoolToReduce": case([node("GlobalAveragePool", "x", "a")], {"x": _f(1, 2, 3, 2)}, "a"),
    "SoftmaxRecognition": case(
        [node("Exp", "x", "a"), node("ReduceSum", "a s", "b"), node("Div", "a b", "c")], {"x": _X}, "c", {"s": _ints(0)}
    ),
    "MatMulTiling": case([node("MatMul", "x y", "a")], {"x": _f(5, 6), "y": _f(6, 9)}, "a"),
    "BlockTransposition": case([node("Transpose", "x", "a", perm=[2, 0, 1])], {"x": _f(2, 3, 5)}, "a"),
    "ElementwiseLoop": _chain("Neg", "Relu", "Sqrt", x=_f(3, 5)),
    "BufferReuse": case(
        [node("Exp", "x", "a"), node("Add", "a x", "b"), node("Mul", "b x", "c")], {"x": _X}, "c"
    ),
}  # fmt: skip


_HELPERS = {"CommonSubexpression": "OperandOrdering", "CaptureElimination": "DeadCode"}
"""Passes that find something to do only after another one."""


def test_a_spec_with_the_option_names_the_passes_that_run() -> None:
    assert tuple(entry.name for entry in REFERENCE_PASSES) == NAMES
    assert parse_target("toy{bugs=all}").about.passes == ABOUT.passes == tuple(entry.name for entry in PASSES)
    assert set(ABOUT.passes) | set(ADDED) == set(NAMES)
    assert len(set(NAMES)) == len(NAMES) >= 60


@pytest.mark.parametrize("name", NAMES)
def test_a_reference_pass_fires_alone_on_its_pattern_and_keeps_the_values(name: str) -> None:
    item = ADDED[name] if name in ADDED else PATTERNS[name]
    alone = Build(disabled=frozenset(NAMES) - {name, _HELPERS.get(name, name)})
    assert name in fired(item, alone, "reference")
    assert name not in fired(item, Build(disabled=frozenset({name})), "reference")
    for build in (alone, FULL, Build(level="basic")):
        wanted = compute(item, OFF, optimiser="reference")
        for found, expected in zip(compute(item, build, optimiser="reference"), wanted, strict=True):
            assert found is not None
            assert expected is not None
            assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
            np.testing.assert_allclose(found.array, expected.array, rtol=1e-5, atol=1e-5)


def test_the_toy_without_the_option_has_none_of_these_passes_and_operators() -> None:
    quantised = case([node("QuantizeLinear", "x s", "a")], {"x": _X}, "a", {"s": np.float32(0.5)})
    with pytest.raises(ToyUnsupported, match="no kernel for QuantizeLinear"):
        compute(quantised, OFF)
    with pytest.raises(ToyUnsupported, match="no kernel for If"):
        compute(ADDED["BranchMerging"], OFF)
    assert compute(quantised, OFF, optimiser="reference")
    assert "MulByMinusOne" not in fired(ADDED["MulByMinusOne"])
    assert "MulByMinusOne" in fired(ADDED["MulByMinusOne"], optimiser="reference")


@settings(max_examples=250, derandomize=True)
@given(st.integers(0, 2**32))
def test_the_reference_optimiser_agrees_with_the_unoptimised_toy_on_random_programs(seed: int) -> None:
    item = random_case(random.Random(seed))
    wanted = compute(item, OFF)
    for build in (FULL, Build(level="basic"), Build(disabled=frozenset({"DeadCode", "CommonSubexpression"}))):
        for found, expected in zip(compute(item, build, optimiser="reference"), wanted, strict=True):
            assert found is not None
            assert expected is not None
            if expected.dtype == "float32" and not (np.abs(expected.array) < 2**24).all():
                continue
            assert found.same(expected)


def test_a_branch_that_is_taken_into_the_program_writes_over_none_of_its_inputs() -> None:
    branch = _branch(node("Add", "x z", "a"), node("Abs", "a", "r"))
    item = case(
        [_if("c", "b", branch, _branch(node("Neg", "x", "r"))), node("Sub", "b x", "d")], {"x": _X}, "d",
        {"c": np.array(True), "z": np.float32(-0.0)},
    )  # fmt: skip
    wanted = compute(item, OFF, optimiser="reference")
    for off in ("", "BranchSelection", "AddMulNeutral"):
        found = compute(item, Build(disabled=frozenset({off})), optimiser="reference")
        pairs = zip(found, wanted, strict=True)
        assert all(one is not None and other is not None and one.same(other) for one, other in pairs)
