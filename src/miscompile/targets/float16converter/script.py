"""The parts of standalone scripts for onnxconverter-common's float16 conversion, besides the runner."""

from miscompile.targets.float16converter.about import ABOUT
from miscompile.targets.optimisers.description import script_lines

SCRIPT = script_lines(
    ABOUT, '"onnxconverter-common", metadata.version("onnxconverter-common")', ("from importlib import metadata",)
)
