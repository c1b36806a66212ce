"""The parts of standalone scripts for onnxoptimizer, besides the runner."""

from miscompile.targets.onnxoptimizer.about import ABOUT
from miscompile.targets.optimisers.description import script_lines

SCRIPT = script_lines(ABOUT, '"onnxoptimizer", onnxoptimizer.__version__', imports=("import onnxoptimizer",))
