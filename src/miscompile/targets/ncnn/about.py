"""The description of ncnn, which does not import it."""

from miscompile.targets.about import About
from miscompile.targets.ncnn.names import PASSES

ABOUT = About(
    name="ncnn",
    title="ncnn (CPU)",
    kinds=("onnx",),
    levels=("off", "full"),
    adapter="miscompile.targets.ncnn.adapter:Ncnn",
    script="miscompile.targets.ncnn.script:SCRIPT",
    distributions=("ncnn",),
    lowered=True,
    blocks=(4, 8, 16),  # packed channels
    max_opset=28,
    max_ir_version=14,
    passes=PASSES,
    extra="ncnn",
    quick=True,
    switches="the layout of packed channels, the algorithms of convolutions and the reuse of memory are options; they "
    "are not observed",
)
