"""The parts of standalone scripts for ONNX Runtime's quant_pre_process, besides the runner."""

from miscompile.targets.optimisers.description import script_lines
from miscompile.targets.quantpreprocess.about import ABOUT

SCRIPT = script_lines(ABOUT, "")
