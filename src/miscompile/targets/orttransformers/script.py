"""The parts of standalone scripts for onnxruntime.transformers.optimizer, besides the runner."""

from miscompile.targets.optimisers.description import script_lines
from miscompile.targets.orttransformers.about import ABOUT

SCRIPT = script_lines(
    ABOUT, "", drops_inputs=True, call='fused(before, level, off, "{{ options.get("model", "bert") }}")'
)
