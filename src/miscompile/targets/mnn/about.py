"""The description of MNN, which does not import it."""

from miscompile.targets.about import About

ABOUT = About(
    name="mnn",
    title="MNN (CPU)",
    kinds=("onnx",),
    levels=("off", "full"),
    adapter="miscompile.targets.mnn.adapter:MnnAdapter",
    script="miscompile.targets.mnn.script:SCRIPT",
    distributions=("MNN",),
    blocks=(4, 8),  # packed channels
    max_opset=18,
    max_ir_version=10,
    extra="mnn",
    unoptimised=False,
    narrowed={"int64": "int32"},
    switches="the converter always optimises; at level off products do not become convolutions, which is the only "
    "rewriting of inference models with a switch",
)
"""MNN stores 64-bit integers in 32 bits by design (https://github.com/alibaba/MNN/issues/2807)."""
