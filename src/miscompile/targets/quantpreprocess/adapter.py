"""ONNX Runtime's quant_pre_process in the worker."""

from collections.abc import Sequence

from miscompile.core.run import Build
from miscompile.targets.optimisers.adapter import OptimiserAdapter
from miscompile.targets.quantpreprocess import runner


class QuantPreProcess(OptimiserAdapter):
    """Infers shapes, optimises with ONNX Runtime, and infers shapes again."""

    def optimise(self, model: bytes, build: Build) -> bytes:
        """Run the steps that the build leaves on."""
        return runner.optimise(model, build.level, build.disabled)

    def observe(self, model: bytes, build: Build) -> Sequence[str]:
        """Return the steps without which the result is another one."""
        whole = runner.optimise(model, build.level, build.disabled)
        return [
            name
            for name in ("symbolic_shape", "optimization", "onnx_shape")
            if name not in build.disabled and runner.optimise(model, build.level, {*build.disabled, name}) != whole
        ]
