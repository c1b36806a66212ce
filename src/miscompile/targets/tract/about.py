"""The description of tract, which does not import it."""

from miscompile.targets.about import About

ABOUT = About(
    name="tract",
    title="tract",
    kinds=("onnx",),
    levels=("off", "full"),
    adapter="miscompile.targets.tract.adapter:Tract",
    script="miscompile.targets.tract.script:SCRIPT",
    distributions=("tract",),
    max_opset=22,
    max_ir_version=10,
    extra="tract",
    prepare="miscompile.targets.tract.environment:prepare",
    unoptimised=False,
    quick=True,
    switches="the library always simplifies and optimises: it has no switches, and both levels are the same",
)
