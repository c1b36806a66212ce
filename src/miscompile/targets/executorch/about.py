"""The description of ExecuTorch, which does not import it."""

from miscompile.targets.about import About
from miscompile.targets.executorch.names import PASSES

ABOUT = About(
    name="executorch",
    title="ExecuTorch (CPU)",
    kinds=("onnx",),
    levels=("off", "kernels", "full"),
    adapter="miscompile.targets.executorch.adapter:ExecuTorch",
    script="miscompile.targets.executorch.script:SCRIPT",
    distributions=("executorch", "torch"),
    lowered=True,
    max_opset=28,
    max_ir_version=14,
    passes=PASSES,
    extra="executorch",
    recycle=300,
    switches="the operators that go to XNNPACK, their grouping, the planning of memory and the removal of copies are "
    "options; they are not observed",
)
