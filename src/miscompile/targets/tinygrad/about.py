"""The description of tinygrad, which does not import it."""

from miscompile.targets.about import About
from miscompile.targets.tinygrad.names import RULES, STAGES

DEVICES = {"clang": "CPU", "x86": "CPU:X86", "python": "PYTHON"}
"""Values of the options `device` and `reference`, with tinygrad's own names for them."""

CUDA = "CUDA"
"""tinygrad's name for the device of builds for `cuda`, independent of the option `device`, which is for the CPU."""

ABOUT = About(
    name="tinygrad",
    title="tinygrad (CPU)",
    kinds=("onnx",),
    levels=("off", "full"),
    adapter="miscompile.targets.tinygrad.adapter:TinyGrad",
    script="miscompile.targets.tinygrad.script:SCRIPT",
    distributions=("tinygrad",),
    max_opset=23,
    max_ir_version=11,
    passes=STAGES + RULES,
    devices=("cpu", "cuda"),
    options={
        "device": "where kernels run: clang (C code; default), x86 (tinygrad's assembler), python (its interpreter)",
        "reference": "where those of level off run; default: the same",
    },
    forced=True,
    extra="tinygrad",
    converters=r"tinygrad/(nn|frontend|extra)/onnx",
    second_implementation=4,
    prepare="miscompile.targets.tinygrad.environment:variables",
    switches="rewrite rules are observed and dropped one by one, as matcher:pattern; three stages by their functions",
)
