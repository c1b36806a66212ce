"""What is known of XLA for the CPU without importing it."""

from miscompile.targets.about import About

PASSES = (
    "algsimp",
    "all-reduce-promotion",
    "apply-xla-transforms",
    "batch-dot-simplification",
    "constant_folding",
    "convolution-canonicalization",
    "cpu-all-reduce-combiner",
    "cpu-parallel-task-assigner",
    "cse",
    "fusion",
    "optimize_input_output_buffer_alias",
    "propagate-call-metadata",
    "reduce-window-resizer",
    "reshape-mover",
    "simplification",
    "simplify-sorts",
    "small-while-loop-hoisting",
    "strip-memory-placement-annotations",
    "transpose-folding",
    "while-loop-constant-sinking",
    "while-loop-invariant-code-motion",
)

ABOUT = About(
    name="xla",
    title="XLA for the CPU, through JAX",
    kinds=("onnx",),
    levels=("off", "O0", "O1", "full"),
    adapter="miscompile.targets.xla.adapter:Xla",
    script="miscompile.targets.xla.script:SCRIPT",
    distributions=("jax", "jaxlib"),
    max_opset=24,
    max_ir_version=13,
    passes=PASSES,
    extra="xla",
    prepare="miscompile.targets.xla.environment:prepare",
    switches="passes are observed in dumps of the module, and switched by the option xla_disable_hlo_passes",
)
