"""The description of ONNX Runtime, which does not import it.

Pass names are those of the graph transformers and rewrite rules that `disabled_optimizers` accepts. The library
ignores unknown names, so a name that a version lacks has no effect. Transformers that always run
(CastFloat16Transformer, EnsureUniqueDQForNodeUnit, ...) cannot be switched off and are omitted. So are the two
rule-based transformers, because they only apply the rewrite rules.
"""

from miscompile.base.specs import Spec
from miscompile.targets.about import About, Front
from miscompile.targets.onnxruntime.transforms import TRANSFORMS

_LEVEL_1 = [
    "DoubleQDQPairsRemover",
    "ConstantSharing",
    "CommonSubexpressionElimination",
    "ConstantFolding",
    "MatMulAddFusion",
    "ReshapeFusion",
    "FreeDimensionOverrideTransformer",
    "SliceConcatToSpaceToDepthFusion",
    "GeluFusionL1",
    "LayerNormFusionL1",
    "QDQPropagationTransformer",
    "WeightBiasQuantization",
    "WhereDummyDq",
    "TransposeOptimizer",
]
_RULES_1 = [
    "EliminateIdentity",
    "EliminateSlice",
    "UnsqueezeElimination",
    "EliminateDropout",
    "ExpandElimination",
    "CastElimination",
    "CastChainElimination",
    "PreShapeNodeElimination",
    "NoopElimination",
    "DivMulFusion",
    "FuseReluClip",
    "GemmSumFusion",
    "GemmTransposeFusion",
    "NotWhereFusion",
    "ConvAddFusion",
    "ConvMulFusion",
    "ConvBNFusion",
    "Pad_Fusion",
    "MatMul_BatchNormalization_Fusion",
    "LabelEncoderFusion",
]
_RULES_2 = ["ClipQuantRewrite", "ReluQuantRewrite", "GemmTransposeFusion"]
_RULES = [*_RULES_1, "ClipQuantRewrite", "ReluQuantRewrite"]
_LEVEL_2 = [
    "TransposeOptimizer_CPUExecutionProvider",
    "QDQS8ToU8Transformer",
    "QDQSelectorActionTransformer",
    "GemmActivationFusion",
    "MatMulIntegerToFloatFusion",
    "DynamicQuantizeMatMulFusion",
    "ConvActivationFusion",
    "GeluFusionL2",
    "LayerNormFusionL2",
    "SimplifiedLayerNormFusion",
    "AttentionFusion",
    "EmbedLayerNormFusion",
    "GatherSliceToSplitFusion",
    "GatherToSliceFusion",
    "MatmulTransposeFusion",
    "BiasGeluFusion",
    "GroupQueryAttentionFusion",
    "SkipLayerNormFusion",
    "BiasSkipLayerNormFusion",
    "FastGeluFusion",
    "QuickGeluFusion",
    "BiasSoftmaxFusion",
    "BiasDropoutFusion",
    "MatMulScaleFusion",
    "MatMulActivationFusion",
    "MatMulNBitsFusion",
    "GroupQueryAttentionPreNormFusion",
    "QDQFinalCleanupTransformer",
]
_LAYOUT = ["NchwcTransformer", "NhwcTransformer", "ConvAddActivationFusion", "FuseFp16InitializerToFp32NodeTransformer"]

_RUNNING = r"Non-zero status code returned while running \w+ node\. Name:'[^']*' Status Message: "

_MASKS = (
    # A call that is refused inside of a body is refused as it is outside.
    (
        r"\[ONNXRuntimeError\] : 1 : FAIL : (?:Node \([^()]*\) Op \(\w+\) \[TypeInferenceError\] Graph attribute "
        r"inferencing failed: )+This is an invalid model\.",
        "[ONNXRuntimeError] : 10 : INVALID_GRAPH : This is an invalid model.",
    ),
    # Of nested nodes the innermost one fails.
    (rf"(?:{_RUNNING})+(?={_RUNNING})", ""),
    # A value that the optimiser has lost is missed by whatever operator reads it.
    (r"(?<=while running )\w+(?= node\. Name:'[^']*' Status Message: \S*/(?:op_kernel_context|ort_value)\.h)", "<any>"),
)

ABOUT = About(
    name="onnxruntime",
    title="ONNX Runtime (CPU)",
    kinds=("onnx",),
    levels=("off", "basic", "extended", "layout", "full"),
    adapter="miscompile.targets.onnxruntime.adapter:OnnxRuntime",
    script="miscompile.targets.onnxruntime.script:SCRIPT",
    optimised="miscompile.targets.onnxruntime.runner:optimised",
    distributions=("onnxruntime",),
    other_builds={"onnxruntime": ("onnxruntime-gpu",)},
    second_implementation=1,
    blocks=(4, 8, 16, 32),  # MLAS: channel blocks of 8 and 16, tiles of products of 4 to 32
    quick=True,
    max_opset=26,
    ci_tests=6000,
    max_ir_version=13,
    dynamic=True,
    functions=True,
    masks=_MASKS,
    transforms=tuple(TRANSFORMS),
    settle="miscompile.targets.onnxruntime.transforms:settled",
    repeats=(Spec("concurrent"), Spec("bound")),
    variants={"reload": (Spec("reload"), Spec("reload").with_options(format="ort"))},
    devices=("cpu", "cuda"),
    passes=tuple(_LEVEL_1 + _RULES + _LEVEL_2 + _LAYOUT),
    rules={"Level1_RuleBasedTransformer": tuple(_RULES_1), "Level2_RuleBasedTransformer": tuple(_RULES_2)},
    fronts={
        "torch": Front(
            "torch",
            "PyTorch's ONNX exporter",
            "miscompile.targets.onnxruntime.torch_front:TorchOnnxRuntime",
            ("torch", "onnxscript"),
            converters=r"(onnxscript/function_libs|torch/onnx/_internal/exporter/_torchlib|onnxscript/(rewriter|optimizer|version_converter))/",
            script="miscompile.targets.onnxruntime.script:TORCH",
        ),
        "torchscript": Front(
            "torch",
            "PyTorch's ONNX exporter of TorchScript",
            "miscompile.targets.onnxruntime.torch_front:TracedOnnxRuntime",
            ("torch", "onnx"),
            converters=r"torch/onnx/_internal/torchscript_exporter/symbolic_(opset|helper)",
            script="miscompile.targets.onnxruntime.script:TORCHSCRIPT",
        ),
        "keras": Front(
            "keras",
            "Keras' export to ONNX, by way of TensorFlow",
            "miscompile.targets.onnxruntime.keras_front:KerasOnnxRuntime",
            ("keras", "tensorflow-cpu", "tf2onnx"),
            converters=r"(tf2onnx/(onnx_opset|rewriter|optimizer|late_rewriters)/|keras/src/export/)",
            script="miscompile.targets.onnxruntime.script:KERAS",
        ),
    },
    twins=(
        ("TransposeOptimizer", "TransposeOptimizer_CPUExecutionProvider"),
        ("LayerNormFusionL1", "LayerNormFusionL2"),
        ("GeluFusionL1", "GeluFusionL2"),
    ),
)
