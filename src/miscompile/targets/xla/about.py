"""What is known of XLA for the CPU without importing it."""

from miscompile.targets.about import About, Front

PASSES = (
    "algsimp",
    "all-reduce-promotion",
    "apply-xla-transforms",
    "batch-dot-simplification",
    "conditional-to-select",
    "constant_folding",
    "convolution-canonicalization",
    "cpu-all-reduce-combiner",
    "cpu-parallel-task-assigner",
    "cse",
    "dce",
    "dot-library-rewriter",
    "dynamic-dimension-simplifier",
    "fusion",
    "gemv-rewriter",
    "map-inline",
    "optimize_input_output_buffer_alias",
    "propagate-call-metadata",
    "reduce-window-resizer",
    "reduce-window-rewriter",
    "reshape-decomposer",
    "reshape-mover",
    "simplify-conditional",
    "simplify-sorts",
    "small-while-loop-hoisting",
    "strip-memory-placement-annotations",
    "topk-rewriter",
    "transpose-folding",
    "tree_reduction_rewriter",
    "tuple-simplifier",
    "while-loop-constant-sinking",
    "while-loop-invariant-code-motion",
    "while-loop-trip-count-annotator",
)

LEVELS: dict[str, int | None] = {"off": None, "O0": 0, "O1": 1, "full": 3}
"""Levels of code generation, of which 3 is XLA's default; None compiles nothing as a whole."""

ABOUT = About(
    name="xla",
    title="XLA for the CPU, through JAX",
    kinds=("onnx",),
    levels=tuple(LEVELS),
    adapter="miscompile.targets.xla.adapter:Xla",
    script="miscompile.targets.xla.script:SCRIPT",
    distributions=("jax", "jaxlib"),
    lowered=True,
    max_opset=28,
    max_ir_version=14,
    passes=PASSES,
    forced=True,
    devices=("cpu", "cuda"),
    extra="xla",
    prepare="miscompile.targets.xla.environment:prepare",
    fronts={
        "keras": Front(
            "keras",
            "Keras on JAX, the model compiled as a whole",
            "miscompile.targets.xla.keras_front:XlaKeras",
            ("keras",),
            converters=r"keras/src/(backend/jax|ops|layers)/",
            script="miscompile.targets.xla.keras_script:SCRIPT",
        ),
    },
    switches="passes are observed in dumps of the module, and switched by the option xla_disable_hlo_passes",
)
