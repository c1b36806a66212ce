"""The description of onnxoptimizer, which does not import it.

Five passes change a model's interface or meaning by design and are left out: rename_input_output, rewrite_input_dtype,
split_init, split_predict, and lift_lexical_references, which adds attributes that ONNX does not know.
"""

from miscompile.targets.optimisers.description import optimiser

DEFAULT = (
    "eliminate_nop_cast",
    "eliminate_nop_dropout",
    "eliminate_nop_flatten",
    "extract_constant_to_initializer",
    "eliminate_consecutive_idempotent_ops",
    "eliminate_if_with_const_cond",
    "eliminate_nop_monotone_argmax",
    "eliminate_nop_pad",
    "eliminate_nop_concat",
    "eliminate_nop_split",
    "eliminate_nop_expand",
    "eliminate_shape_gather",
    "eliminate_slice_after_shape",
    "eliminate_nop_transpose",
    "fuse_add_bias_into_conv",
    "fuse_bn_into_conv",
    "fuse_consecutive_concats",
    "fuse_consecutive_log_softmax",
    "fuse_consecutive_reduce_unsqueeze",
    "fuse_consecutive_squeezes",
    "fuse_consecutive_transposes",
    "fuse_matmul_add_bias_into_gemm",
    "fuse_pad_into_conv",
    "fuse_pad_into_pool",
    "fuse_transpose_into_gemm",
    "fuse_concat_into_reshape",
    "eliminate_nop_reshape",
    "eliminate_nop_with_unit",
    "eliminate_common_subexpression",
    "fuse_qkv",
    "fuse_consecutive_unsqueezes",
    "eliminate_deadend",
    "eliminate_identity",
    "eliminate_shape_op",
    "fuse_consecutive_slices",
    "eliminate_unused_initializer",
    "eliminate_duplicate_initializer",
    "rewrite_where",
)
"""The passes of `onnxoptimizer.optimize(model)`, in its order, but for `nop`."""

OTHERS = ("adjust_add", "set_unique_name_for_nodes", "replace_einsum_with_matmul", "adjust_slice_and_matmul")
"""Passes that one must ask for, and that keep a model's meaning."""

ABOUT = optimiser(
    "onnxoptimizer",
    "OnnxOptimizer",
    (*OTHERS, *DEFAULT),
    levels=("off", "default", "full"),
    switches="onnxoptimizer.optimize takes a list of passes; each is run alone to see whether it changes a model",
)
