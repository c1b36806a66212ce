"""The description of onnxslim, which does not import it."""

from miscompile.targets.optimisers.description import optimiser

PATTERNS = (
    "EliminationConcat",
    "EliminationReshape",
    "EliminationReshapeAs",
    "EliminationSlice",
    "EliminationTranspose",
    "EliminationTransposeViewTranspose",
    "EliminationUnsqueeze",
    "EliminationTransposeAsReshape",
    "FusionConcatReshape",
    "FusionConvAdd",
    "FusionConvTransposeAdd",
    "FusionConvBN",
    "FusionConvTransposeBN",
    "FusionConvMul",
    "FusionConvTransposeMul",
    "FusionGemm",
    "FusionGemmMul",
    "FusionGemmAdd",
    "FusionPadConv",
    "FusionReduce",
)
"""Patterns that `skip_fusion_patterns` accepts."""

STEPS = ("constant_folding", "dead_node_elimination", "subexpression_elimination", "weight_tying")
"""Steps that `skip_optimizations` accepts, besides `graph_fusion`, which applies the patterns."""

ABOUT = optimiser(
    "onnxslim",
    "OnnxSlim",
    (*PATTERNS, *STEPS, "shape_inference"),
    switches="skip_fusion_patterns, skip_optimizations and no_shape_infer of onnxslim.slim; its log names the patterns",
)
