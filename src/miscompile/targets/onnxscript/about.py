"""The description of onnxscript's optimiser, which does not import it.

Names of rules are those that `onnxscript.rewriter.rules.common` exports, without `_rule`. A `fold_` pass is the
special treatment of one operator by constant folding; `fold` evaluates any other operator.
"""

from miscompile.targets.about import About
from miscompile.targets.optimisers.description import optimiser

RULES = (
    "mul_by_1", "add_0", "sub_0", "div_by_1", "dropout_zero", "dropout_inference",
    "two_reshapes_matmul_reshape", "one_reshape_matmul_reshape",
    "cast_constant_of_shape", "cast_constant_of_shape_without_value", "collapse_slice", "collapse_slice2",
    "materialize_reshape_shape", "min_min", "max_max", "min_max", "max_min",
    "successive_clip_relu", "successive_relu_clip", "successive_relu", "successive_clip",
    "cast_cast", "no_op_cast", "no_op_expand", "flatten_to_reshape", "reshape_reshape", "slice_split",
    "no_op_transpose", "transpose_transpose", "unsqueeze_unsqueeze", "squeeze_reshape_1d",
    "no_op_dynamic_scatter_nd", "no_op_static_scatter_nd", "normalize_pad_format_conv",
    "normalize_pad_format_conv_integer", "fuse_pad_into_conv", "fuse_pad_into_conv_integer",
    "fuse_batchnorm_into_conv", "fuse_batchnorm_into_conv_transpose", "fuse_batchnorm_into_gemm",
    "remove_optional_bias_from_conv", "remove_optional_bias_from_conv_transpose",
    "remove_optional_bias_from_qlinear_conv", "remove_optional_bias_from_gemm",
)  # fmt: skip
"""The rules that `onnxscript.optimizer.optimize` applies."""

OTHERS = (
    "affine_conv_fusion", "conv_affine_fusion", "expand_before_binary_op", "fuse_hardswish", "matmul_add_to_gemm",
    "transpose_a_matmul_add_to_gemm", "transpose_b_matmul_add_to_gemm", "transpose_ab_matmul_add_to_gemm",
    "gemm_to_matmul_add",
)  # fmt: skip
"""Rules that one must ask for; level `full` applies them after the others."""

FOLDED = (
    "Add", "Abs", "Gather", "Reshape", "Squeeze", "Cast", "CastLike", "Shape", "Size", "If", "Identity",
    "SequenceConstruct", "Concat", "Dropout", "Expand", "ConcatFromSequence", "SplitToSequence", "SequenceAt",
)  # fmt: skip
"""Operators that constant folding treats specially."""

STEPS = (
    "fold", "inline", "remove_unused_nodes", "lift_constants", "lift_subgraph_initializers",
    "deduplicate_initializers", "common_subexpressions", "fix_outputs", "fix_names",
)  # fmt: skip
"""Other steps of `onnxscript.optimizer.optimize`."""

ABOUT: About = optimiser(
    "onnxscript",
    "OnnxScript",
    (*RULES, *OTHERS, *(f"fold_{name}" for name in FOLDED), *STEPS),
    levels=("off", "default", "full"),
    forced=True,
    switches="rules are left out, the functions of other steps replaced for the call; every step tells what it changes",
)
