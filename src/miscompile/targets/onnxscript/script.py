"""The parts of standalone scripts for onnxscript's optimiser, besides the runner."""

from miscompile.targets.onnxscript.about import ABOUT
from miscompile.targets.optimisers.description import script_lines

SCRIPT = script_lines(ABOUT, '"onnxscript", onnxscript.__version__', imports=("import onnxscript",))
