"""onnxconverter-common's float16 conversion in the worker."""

from collections.abc import Sequence

from miscompile.core.run import Build
from miscompile.targets.float16converter import runner
from miscompile.targets.optimisers.adapter import OptimiserAdapter


class Float16Converter(OptimiserAdapter):
    """Converts to half precision."""

    def optimise(self, model: bytes, build: Build) -> bytes:
        """Convert the model."""
        return runner.optimise(model, build.level, build.disabled)

    def observe(self, model: bytes, build: Build) -> Sequence[str]:
        """Return nothing, because there are no passes."""
        return ()
