"""onnxoptimizer in the worker."""

from collections.abc import Sequence

import onnxoptimizer.onnx_opt_cpp2py_export as native

from miscompile.core.run import Build
from miscompile.targets.onnxoptimizer import runner
from miscompile.targets.onnxoptimizer.about import DEFAULT, OTHERS
from miscompile.targets.optimisers.adapter import OptimiserAdapter


class OnnxOptimizer(OptimiserAdapter):
    """Runs a list of passes."""

    def optimise(self, model: bytes, build: Build) -> bytes:
        """Run the passes of the build's level."""
        return runner.optimise(model, build.level, build.disabled)

    def observe(self, model: bytes, build: Build) -> Sequence[str]:
        """Run the passes one after the other; return those whose result is another model."""
        changed = []
        current: bytes = native.optimize(model, ["nop"])
        for name in (*(OTHERS if build.level == "full" else ()), *DEFAULT):
            if name not in build.disabled:
                after: bytes = native.optimize(current, [name])
                if after != current:
                    changed.append(name)
                current = after
        return changed
