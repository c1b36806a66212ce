"""The parts of standalone scripts for onnxsim, besides the runner."""

from miscompile.targets.onnxsim.about import ABOUT
from miscompile.targets.optimisers.description import script_lines

SCRIPT = script_lines(ABOUT, '"onnxsim", onnxsim.__version__', imports=("import onnxsim",))
