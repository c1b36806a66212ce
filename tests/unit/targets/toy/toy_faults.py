"""For each planted fault the smallest model that shows it."""

import numpy as np
from toy_bench import case, node

from miscompile.core.case import Case


def _f(*shape: int, start: float = -4) -> np.ndarray:
    return (np.arange(int(np.prod(shape)), dtype=np.float32) + np.float32(start)).reshape(shape)


def _i8(*values: int) -> np.ndarray:
    return np.array(values, np.int8)


_CONV_W = np.array([1, -2, 3, 4, 5, -6, 7, 8], np.float32).reshape(2, 1, 2, 2)
_ONE, _TWO = np.array([1, 1], np.float32), np.array([2, 3], np.float32)

CASES: dict[str, Case] = {
    "cse_ignores_attributes": case(
        [node("LeakyRelu", "x", "a", alpha=0.5), node("LeakyRelu", "x", "b", alpha=0.25)], {"x": _f(6)}, "a b"
    ),
    "transpose_pair_not_inverse": case(
        [node("Transpose", "x", "a", perm=[1, 2, 0]), node("Transpose", "a", "b", perm=[1, 2, 0])],
        {"x": _f(2, 3, 4)},
        "b",
    ),
    "cast_chain_narrowing": case(
        [node("Cast", "x", "a", to="int8"), node("Cast", "a", "b", to="int32")],
        {"x": np.array([5, 300], np.int32)}, "b",
    ),
    "cast_chain_bool": case(
        [node("Cast", "x", "a", to="bool"), node("Cast", "a", "b", to="int32")], {"x": np.array([-1, 0], np.int64)}, "b"
    ),
    "relu_clip_missing_min": case(
        [node("Relu", "x", "a"), node("Clip", "a _ hi", "b")], {"x": _f(8)}, "b", {"hi": np.float32(2)}
    ),
    "scale_hoisting_vector": case(
        [node("Mul", "x c", "a"), node("MatMul", "a y", "b")],
        {"x": _f(3, 2), "y": _f(2, 2)},
        "b",
        {"c": np.array([[2, 3]], np.float32)},
    ),
    "mean_by_reciprocal": case(
        [node("ReduceMean", "x", "a", keepdims=0)], {"x": np.array([3, 3, 3], np.int32)}, "a", opset=17
    ),
    "mod_as_bit_mask": case(
        [node("Mod", "x c", "a", fmod=1)], {"x": np.array([-3, 7], np.int32)}, "a", {"c": np.int32(4)}
    ),
    "arg_min_of_neg_overflow": case(
        [node("Neg", "x", "a"), node("ArgMin", "a", "b", axis=0)], {"x": _i8(-128, 3, 5)}, "b"
    ),
    "inlined_in_wider_type": case(
        [node("Add", "x x", "a"), node("Cast", "a", "b", to="int32")], {"x": _i8(100, 1)}, "b"
    ),
    "signed_div_as_shift": case([node("Div", "x c", "a")], {"x": np.array([-3, 7], np.int32)}, "a", {"c": np.int32(2)}),
    "sub_commutes": case([node("Sub", "y x", "a")], {"x": _f(3), "y": _f(3, start=2)}, "a"),
    "conv_add_last_axis": case(
        [node("Conv", "x w", "a"), node("Add", "a c", "b")],
        {"x": _f(1, 1, 3, 3)},
        "b",
        {"w": _CONV_W, "c": np.array([1, 2], np.float32)},
    ),
    "reshape_merge_zero": case(
        [node("Reshape", "x s", "a"), node("Reshape", "a t", "b")],
        {"x": _f(2, 6)},
        "b",
        {"s": np.array([3, 4], np.int64), "t": np.array([0, 2, -1], np.int64)},
    ),
    "slice_merge_negative_step": case(
        [node("Slice", "x s e a m", "p"), node("Slice", "p z t a o", "b")],
        {"x": _f(5)},
        "b",
        {
            "s": np.array([4], np.int64), "e": np.array([-9], np.int64), "a": np.array([0], np.int64),
            "m": np.array([-1], np.int64), "z": np.array([0], np.int64),
            "t": np.array([3], np.int64), "o": np.array([1], np.int64),
        },
    ),
    "reduce_fusion_keepdims": case(
        [node("ReduceSum", "x p", "a", keepdims=0), node("ReduceSum", "a q", "b", keepdims=0)],
        {"x": _f(2, 3, 4)},
        "b",
        {"p": np.array([0], np.int64), "q": np.array([1], np.int64)},
    ),
    "pad_conv_mode": case(
        [node("Pad", "x p", "a", mode="edge"), node("Conv", "a w", "b")],
        {"x": _f(1, 1, 3, 3)},
        "b",
        {"w": _CONV_W, "p": np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64)},
    ),
    "concat_split_order": case(
        [node("Split", "x s", "a b", axis=0), node("Concat", "b a", "c", axis=0)],
        {"x": _f(4)},
        "c",
        {"s": np.array([2, 2], np.int64)},
    ),
    "softmax_axis": case(
        [node("LogSoftmax", "x", "a", axis=0), node("Exp", "a", "b")], {"x": _f(2, 3)}, "b"
    ),
    "batch_norm_epsilon": case(
        [node("Conv", "x w", "a"), node("BatchNormalization", "a s z m v", "b", epsilon=0.5)],
        {"x": _f(1, 1, 3, 3)},
        "b",
        {"w": _CONV_W, "s": _ONE, "z": _ONE, "m": _TWO, "v": _TWO},
    ),
    "folding_in_float32": case([node("Exp", "c", "a")], {}, "a", {"c": np.array([0.1, 1.7], np.float64)}),
    "bool_or_as_add": case([node("Or", "x x", "a")], {"x": np.array([True, False])}, "a"),
    "unsigned_sub_clamped": case(
        [node("Sub", "x y", "a")], {"x": np.array([1, 9], np.uint8), "y": np.array([2, 3], np.uint8)}, "a"
    ),
    "bias_inside_activation": case(
        [node("MatMul", "x w", "a"), node("Relu", "a", "b"), node("Add", "b c", "d")],
        {"x": _f(2, 3)},
        "d",
        {"w": _f(3, 2), "c": np.array([-5, 100], np.float32)},
    ),
    "mul_zero_drops_broadcast": case(
        [node("Mul", "x c", "a")], {"x": np.array([1, 2], np.int32)}, "a", {"c": np.int32(0)}
    ),
    "where_constant_no_expand": case(
        [node("Where", "c x y", "a")], {"x": _f(3), "y": _f(2, 3)}, "a", {"c": np.array(True)}
    ),
    "sub_self_dtype": case([node("Sub", "x x", "a")], {"x": np.array([1, 2], np.int32)}, "a"),
    "fusion_drops_inner_output": case(
        [node("MatMul", "x w", "a"), node("Relu", "a", "b")], {"x": _f(2, 3)}, "a b", {"w": _f(3, 2)}
    ),
    "rank0_key_error": case([node("Add", "x y", "a")], {"x": np.float32(1), "y": np.float32(2)}, "a"),
    "matmul_bias_rank": case(
        [node("MatMul", "x w", "a"), node("Add", "a c", "b")],
        {"x": _f(2, 3)},
        "b",
        {"w": _f(3, 2), "c": _f(3, 2, 2)},
    ),
    "checked_gather": case([node("Gather", "x i", "a")], {"x": _f(4), "i": np.array([-1, 0], np.int64)}, "a"),
    "segfault_tile": case([node("Tile", "x r", "a")], {"x": _f(2, 2, 1)}, "a", {"r": np.array([1, 2, 1], np.int64)}),
    "abort_reflect_pad": case(
        [node("Pad", "x p", "a", mode="reflect")], {"x": _f(4)}, "a", {"p": np.array([1, 1], np.int64)}
    ),
    "hang_concat_same": case([node("Concat", "x x", "a", axis=0)], {"x": _f(2)}, "a"),
    "memory_expand": case([node("Expand", "x s", "a")], {"x": _f(3)}, "a", {"s": np.array([2, 3], np.int64)}),
    "cubic_cse": case([node("Add", "x x", "a")], {"x": _f(3)}, "a"),
    "garbage_arg_max": case([node("ArgMax", "x", "a", axis=0)], {"x": _f(3)}, "a"),
}  # fmt: skip
