"""Every pass fires on its pattern, can be switched off, and changes no value; so does any mixture of them."""

import random
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import ArrayLike
from toy_bench import case, compute, fired, node
from toy_faults import CASES
from toy_random import random_case

from miscompile.core.case import Case
from miscompile.core.run import Build
from miscompile.core.tensor import Array
from miscompile.graph.attributes import PlainValue
from miscompile.targets.toy.about import ABOUT
from miscompile.targets.toy.passes.pipeline import PASSES

OFF, FULL = Build(level="off"), Build(level="full")


def _f(*shape: int) -> Array:
    return (np.arange(int(np.prod(shape)), dtype=np.float32) - 4).reshape(shape)


def _chain(*ops: str, x: ArrayLike | None = None, **attributes: Mapping[str, PlainValue]) -> Case:
    """Model that applies unary `ops` one after the other."""
    nodes = [node(op, f"v{i}", f"v{i + 1}", **attributes.get(op, {})) for i, op in enumerate(ops)]
    return case(nodes, {"v0": _f(2, 3) if x is None else x}, f"v{len(ops)}")


_W = np.array([1, -2, 3, 4, 5, -6, 7, 8], np.float32).reshape(2, 1, 2, 2)

PATTERNS: dict[str, Case] = {
    "ConstantFolding": CASES["folding_in_float32"],
    "IdentityElimination": _chain("Identity", "Dropout", "Neg"),
    "NoOpElimination": _chain("Cast", "Neg", Cast={"to": "float32"}),
    "CastElimination": case(
        [node("Cast", "x", "a", to="int32"), node("Cast", "a", "b", to="int16")], {"x": np.array([-1, 5], np.int8)}, "b"
    ),
    "TransposeElimination": CASES["transpose_pair_not_inverse"],
    "ReshapeMerging": CASES["reshape_merge_zero"],
    "AddMulNeutral": case([node("Mul", "x c", "a"), node("Neg", "a", "b")], {"x": _f(3)}, "b", {"c": np.float32(1)}),
    "OperandOrdering": case([node("Add", "y x", "a")], {"x": _f(3), "y": _f(3)}, "a"),
    "CommonSubexpression": case(
        [node("Add", "x y", "a"), node("Add", "y x", "b"), node("Mul", "a b", "c")], {"x": _f(3), "y": _f(3)}, "c"
    ),
    "ShapeCleanup": _chain("Flatten", "Flatten", x=_f(2, 3, 4), Flatten={"axis": 2}),
    "SliceMerging": case(
        [node("Slice", "x s e", "a"), node("Slice", "a s e", "b")],
        {"x": _f(6)}, "b", {"s": np.array([1], np.int64), "e": np.array([5], np.int64)},
    ),
    "SplitConcatElimination": case(
        [node("Split", "x s", "a b", axis=0), node("Concat", "a b", "c", axis=0)],
        {"x": _f(4)}, "c", {"s": np.array([1, 3], np.int64)},
    ),
    "ExpandElimination": case(
        [node("Expand", "x s", "a"), node("Add", "a y", "b")],
        {"x": _f(3), "y": _f(2, 3)}, "b", {"s": np.array([2, 3], np.int64)},
    ),
    "TransposePushdown": _chain("Transpose", "Relu", "Transpose", Transpose={"perm": [1, 0]}),
    "CastSinking": case(
        [node("Add", "x x", "a"), node("Cast", "a", "b", to="int8")], {"x": np.array([100, -200], np.int32)}, "b"
    ),
    "DivToMul": case([node("Div", "x c", "a")], {"x": _f(3)}, "a", {"c": np.array([2, -0.25, 1024], np.float32)}),
    "StrengthReduction": case([node("Mod", "x c", "a")], {"x": np.array([-5, 5], np.int8)}, "a", {"c": np.int8(4)}),
    "SelfCancellation": CASES["sub_self_dtype"],
    "ZeroAbsorption": CASES["mul_zero_drops_broadcast"],
    "DistributeMul": case(
        [node("Mul", "x y", "a"), node("Mul", "z x", "b"), node("Add", "a b", "c")],
        {"x": np.array([100, 3], np.int8), "y": np.array([7, -7], np.int8), "z": np.array([1, 2], np.int8)}, "c",
    ),
    "WhereConstant": CASES["where_constant_no_expand"],
    "PadConvFusion": case(
        [node("Pad", "x p", "a"), node("Conv", "a w", "b")],
        {"x": _f(1, 1, 3, 3)}, "b", {"w": _W, "p": np.array([0, 0, 1, 0, 0, 0, 0, 2], np.int64)},
    ),
    "BatchNormFolding": CASES["batch_norm_epsilon"],
    "ConvAddFusion": case(
        [node("Conv", "x w", "a"), node("Add", "c a", "b")],
        {"x": _f(1, 1, 3, 3)}, "b", {"w": _W, "c": np.array([[[5]], [[-7]]], np.float32)},
    ),
    "ConvScaleFolding": case(
        [node("Conv", "x w", "a"), node("Mul", "a c", "b")],
        {"x": _f(1, 1, 3, 3)}, "b", {"w": _W, "c": np.array([[[5]], [[-7]]], np.float32)},
    ),
    "ReluClipFusion": CASES["relu_clip_missing_min"],
    "ScaleHoisting": case(
        [node("Mul", "c x", "a"), node("MatMul", "a y", "b")], {"x": _f(3, 2), "y": _f(2, 2)}, "b", {"c": _f(1, 1)}
    ),
    "MatMulAddFusion": case(
        [node("MatMul", "x y", "a"), node("Add", "c a", "b")], {"x": _f(3, 2), "y": _f(2, 4)}, "b", {"c": _f(4)}
    ),
    "ActivationFusion": case(
        [node("Gemm", "x y", "a", transB=1), node("Relu", "a", "b")], {"x": _f(3, 2), "y": _f(4, 2)}, "b"
    ),
    "ReduceFusion": CASES["reduce_fusion_keepdims"],
    "SoftmaxFusion": CASES["softmax_axis"],
    "ArgNegFusion": _chain("Neg", "ArgMin"),
    "DeadCode": case([node("Neg", "x", "a"), node("Abs", "x", "b")], {"x": _f(3)}, "a"),
    "KernelSelection": case([node("Gather", "x i", "a")], {"x": _f(4)}, "a", {"i": np.array([3, 0], np.int64)}),
}  # fmt: skip


def test_about_names_the_passes() -> None:
    assert tuple(entry.name for entry in PASSES) == ABOUT.passes
    assert set(PATTERNS) == set(ABOUT.passes)
    assert len(ABOUT.passes) >= 12


@pytest.mark.parametrize("name", ABOUT.passes)
def test_pass_fires_alone_on_its_pattern_and_keeps_the_values(name: str) -> None:
    item = PATTERNS[name]
    alone = Build(disabled=frozenset(ABOUT.passes) - {name, *(["OperandOrdering"] if "Common" in name else [])})
    assert name in fired(item, alone)
    assert name not in fired(item, Build(disabled=frozenset({name})))
    for build in (alone, FULL, Build(level="basic")):
        for found, wanted in zip(compute(item, build), compute(item, OFF), strict=True):
            assert found is not None
            assert wanted is not None
            assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
            np.testing.assert_allclose(found.array, wanted.array, rtol=1e-5, atol=1e-5)


def test_level_basic_runs_the_basic_passes_only() -> None:
    basic = {entry.name for entry in PASSES if entry.basic}
    assert 0 < len(basic) < len(PASSES)
    for name, item in PATTERNS.items():
        names = fired(item, Build(level="basic"))
        assert set(names) <= basic
        assert (name in basic) <= (name in names)
        assert not fired(item, OFF)


@pytest.mark.parametrize(
    ("x", "constant", "op"),
    [(-0.0, 0.0, "Add"), (np.inf, 0.0, "Mul"), (np.nan, 0.0, "Mul"), (np.inf, np.inf, "Sub"), (3.0, 3.0, "Div")],
)
def test_rewrites_respect_special_floats(x: float, constant: float, op: str) -> None:
    item = case([node(op, "x c", "a")], {"x": np.array([x], np.float32)}, "a", {"c": np.array([constant], np.float32)})
    (found,), (wanted,) = compute(item, FULL), compute(item, OFF)
    assert found is not None
    assert wanted is not None
    assert found.same(wanted)


def test_transposes_are_not_pushed_through_a_constant_of_higher_rank() -> None:
    nodes = [node("Transpose", "x", "a", perm=[1, 0]), node("Add", "a c", "b")]
    item = case(nodes, {"x": _f(2, 3)}, "b", {"c": _f(1, 1, 1)})
    (found,), (wanted,) = compute(item, FULL), compute(item, OFF)
    assert found is not None
    assert wanted is not None
    assert found.same(wanted)


@settings(max_examples=250, derandomize=True)
@given(st.integers(0, 2**32))
def test_optimised_and_unoptimised_agree_on_random_programs(seed: int) -> None:
    item = random_case(random.Random(seed))
    wanted = compute(item, OFF)
    for build in (FULL, Build(level="basic"), Build(disabled=frozenset({"DeadCode", "CommonSubexpression"}))):
        for found, reference in zip(compute(item, build), wanted, strict=True):
            assert found is not None
            assert reference is not None
            if reference.dtype == "float32" and not (np.abs(reference.array) < 2**24).all():
                continue
            assert found.same(reference)
