"""The description of LiteRT, which does not import it."""

from miscompile.targets.about import About
from miscompile.targets.litert.names import PASSES

ABOUT = About(
    name="litert",
    title="LiteRT (CPU)",
    kinds=("onnx",),
    levels=("off", "builtin", "full"),
    adapter="miscompile.targets.litert.adapter:LiteRt",
    script="miscompile.targets.litert.script:SCRIPT",
    distributions=("ai-edge-litert",),
    lowered=True,
    blocks=(4, 8, 16),  # XNNPACK's tiles
    max_opset=28,
    max_ir_version=14,
    passes=PASSES,
    extra="litert",
    quick=True,
    switches="the delegate, its merging of nodes, and the sharing of memory are options; they are not observed",
)
