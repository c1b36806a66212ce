"""The parts of standalone scripts for onnxslim, besides the runner."""

from miscompile.targets.onnxslim.about import ABOUT
from miscompile.targets.optimisers.description import script_lines

SCRIPT = script_lines(ABOUT, '"onnxslim", onnxslim.__version__', imports=("import onnxslim",), drops_inputs=True)
