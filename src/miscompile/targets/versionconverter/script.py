"""The parts of standalone scripts for onnx's version converter, besides the runner."""

from miscompile.targets.optimisers.description import script_lines
from miscompile.targets.versionconverter.about import ABOUT

SCRIPT = script_lines(
    ABOUT, '"onnx", onnx.__version__', call='converted(before, level, off, {{ options.get("to", "25") }})'
)
