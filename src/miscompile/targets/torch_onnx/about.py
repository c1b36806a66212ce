"""The description of PyTorch's exporters to ONNX, which does not import them."""

from miscompile.targets.about import About, Front
from miscompile.targets.torch_onnx.names import PASSES, RULES, TRACED

ABOUT = About(
    name="torch_onnx",
    title="PyTorch's exporters to ONNX",
    kinds=("onnx",),
    levels=("off", "plain", "full"),
    adapter="miscompile.targets.torch_onnx.adapter:TorchOnnx",
    script="miscompile.targets.torch_onnx.script:SCRIPT",
    distributions=("torch", "onnxscript", "onnxruntime"),
    lowered=True,
    max_opset=28,
    max_ir_version=14,
    passes=(*PASSES, *RULES, *TRACED),
    options={
        "exporter": "dynamo (default: through torch.export) or torchscript (the older exporter)",
        "runtime": "what runs the exported model: onnxruntime (default), or reference (onnx's own evaluator)",
    },
    forced=True,
    narrowed={"float64": "float32"},  # attributes of ONNX are float32, such as epsilon
    extra="torch_onnx",
    recycle=500,
    fronts={
        "torch": Front(
            "torch",
            "torch.onnx.export of single operators",
            "miscompile.targets.torch_onnx.torch_front:ExportedTorch",
            ("torch", "onnxscript"),
            converters=r"(torch/onnx/_internal/exporter/_torchlib|onnxscript/(rewriter|optimizer|version_converter))/",
            script="miscompile.targets.torch_onnx.script:TORCH",
        ),
    },
    switches="onnxscript's rewrite rules and passes, and TorchScript's passes, are observed and switched by hooks",
)
