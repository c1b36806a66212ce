"""The description of IREE, which does not import it."""

from miscompile.targets.about import About, CpuCap
from miscompile.targets.iree.flags import LEVELS, SWITCHES

ABOUT = About(
    name="iree",
    title="IREE (llvm-cpu)",
    kinds=("onnx",),
    levels=LEVELS,
    adapter="miscompile.targets.iree.adapter:Iree",
    script="miscompile.targets.iree.script:SCRIPT",
    distributions=("iree-base-compiler", "iree-base-runtime"),
    max_opset=22,
    max_ir_version=10,
    dynamic=True,
    devices=("cpu", "cuda"),
    passes=SWITCHES,
    extra="iree",
    cpu_caps={"AVX2": CpuCap(words=("--iree-llvmcpu-target-cpu=host", "--iree-llvmcpu-target-cpu=haswell"))},
    upstream="miscompile.targets.iree.lit:lit_test",
    converters=r"iree/compiler/(tools|extras|dialects)/.*onnx",
    trace="miscompile.targets.iree.trace",
    switches="IREE has no switch for a single pass: its optimisation flags are switched instead, by name, and what "
    "fires is not observed; levels and phases (phases.py) narrow a fault down further",
)
