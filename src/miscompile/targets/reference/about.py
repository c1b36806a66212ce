"""The description of the ONNX reference implementation, which does not import it."""

from miscompile.targets.about import About

ABOUT = About(
    name="reference",
    title="ONNX reference implementation",
    role="reference",
    kinds=("onnx",),
    levels=("off", "full"),
    adapter="miscompile.targets.reference.adapter:Reference",
    script="miscompile.targets.reference.script:SCRIPT",
    distributions=("onnx",),
    max_opset=22,
    max_ir_version=10,
    unoptimised=False,
    switches="an interpreter in numpy: it has no passes. Level off has our definitions of operators that it mistakes",
)
