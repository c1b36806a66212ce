"""Names of the exporters' optional steps, by which builds switch them off."""

PASSES = (
    "CommonSubexpressionEliminationPass",
    "DeduplicateInitializersPass",
    "FoldConstantsPass",
    "LiftConstantsToInitializersPass",
    "LiftSubgraphInitializersToMainGraphPass",
    "RemoveUnusedFunctionsPass",
    "RemoveUnusedNodesPass",
    "RemoveUnusedOpsetsPass",
)
"""Passes of onnx_ir and onnxscript that `optimize=True` runs, by the names of their classes. `InlinePass` is not among
them, because the conversion to another opset needs it."""

NO_OP = "no_op"
"""The switch of the rules without a name and without a variable: multiplications by 1 and additions of 0."""

RULES = (
    NO_OP,
    "CastCast",
    "CastIdentity",
    "ExpandIdentity",
    "Flatten2Reshape",
    "FuseBatchNormIntoConv",
    "FuseBatchNormIntoConvTranspose",
    "FuseBatchNormIntoGemm",
    "FuseConvIntegerPad",
    "FuseConvPad",
    "FuseMaxMinToClip",
    "FuseMinMaxToClip",
    "FuseSuccessiveClip",
    "FuseSuccessiveClipRelu",
    "FuseSuccessiveMax",
    "FuseSuccessiveMin",
    "FuseSuccessiveRelu",
    "FuseSuccessiveReluClip",
    "MaterializeReshapeShape",
    "NormalizePadFormatConv",
    "NormalizePadFormatConvInteger",
    "RemoveOptionalBiasFromConv",
    "RemoveOptionalBiasFromConvTranspose",
    "RemoveOptionalBiasFromGemm",
    "RemoveOptionalBiasFromQLinearConv",
    "ReshapeReshape",
    "ScatterAllDynamic",
    "ScatterAllStatic",
    "SlicesSplit",
    "SqueezeReshape1d",
    "TransposeIdentity",
    "TransposeTranspose",
    "UnsqueezeUnsqueeze",
    "cast_constant_of_shape_rule",
    "cast_constant_of_shape_without_value_rule",
    "collapse_slice2_rule",
    "collapse_slice_rule",
    "div_by_1_rule",
    "dropout_inference_rule",
    "dropout_zero_rule",
    "one_reshape_matmul_reshape_rule",
    "sub_0_rule",
    "two_reshapes_matmul_reshape_rule",
)
"""Rewrite rules of onnxscript that `optimize=True` applies."""

TRACED = (
    "_jit_pass_canonicalize_graph_fuser_ops",
    "_jit_pass_cse",
    "_jit_pass_fuse_addmm",
    "_jit_pass_onnx_constant_fold",
    "_jit_pass_onnx_deduplicate_initializers",
    "_jit_pass_onnx_eval_peephole",
    "_jit_pass_peephole",
)
"""Passes of the exporter of TorchScript that a model does not need, by the names of their bindings.

`_jit_pass_onnx_peephole` is not among them, because it also removes lists, which ONNX lacks."""
