"""Calls of onnxsim; standalone scripts contain the functions that they need."""

from collections.abc import Collection

import onnx
import onnxsim
from onnxsim import onnxsim_cpp2py_export as onnxsim_native

OTHERS = [
    "adjust_add",
    "set_unique_name_for_nodes",
    "replace_einsum_with_matmul",
    "adjust_slice_and_matmul",
    "defuse_matmul_integer_to_float",
    "dilated_conv_to_taps",
    "explicit_auto_pad",
    "explicit_conv_padding",
    "fuse_matmul_add_bias_into_gemm_batched",
    "fuse_matmul_into_conv",
    "fuse_reduce_sum_into_conv",
    "gemm_transA_to_transpose",
    "maxpool_rowmajor_when_indices_unused",
    "neg_to_mul",
    "pow2_to_mul",
    "rewrite_deform_conv_to_gather",
    "rewrite_gatherelements_to_gather",
    "rewrite_gathernd_to_gather",
    "rewrite_gather_over_concat",
    "rewrite_gridsample_to_gather",
    "rewrite_implicit_broadcast",
    "rewrite_scatterelements_to_scatternd",
    "rewrite_tensor_scatter_to_scatter_elements",
    "split_large_gather",
]
"""Passes beyond the default ones at level `full`."""


def optimise(before: bytes, level: str, off: Collection[str]) -> bytes:
    """Return the model after the passes of a level, without those that are `off`."""
    known = set(onnxsim_native._list_other_optimizers())
    simplified, _ = onnxsim.simplify(
        onnx.load_model_from_string(before),
        skipped_optimizers=sorted(off),
        extra_optimizers=[name for name in OTHERS if level == "full" and name in known and name not in off],
        skip_constant_folding="constant_folding" in off,
        skip_shape_inference="shape_inference" in off,
        import_custom_schemas=False,  # most of the time of a call otherwise
    )
    result: bytes = simplified.SerializeToString()
    return result
