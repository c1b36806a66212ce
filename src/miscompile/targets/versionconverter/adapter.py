"""onnx's version converter in the worker."""

from collections.abc import Sequence

from miscompile.core.run import Build
from miscompile.targets.optimisers.adapter import EXECUTORS, OptimiserAdapter
from miscompile.targets.versionconverter import runner


class VersionConverter(OptimiserAdapter):
    """Converts to one operator set, and at level `full` back."""

    def __init__(self, executor: str = EXECUTORS[0], to: str = str(runner.DEFAULT)) -> None:
        super().__init__(executor)
        self._to = int(to)

    def optimise(self, model: bytes, build: Build) -> bytes:
        """Convert, and perhaps back."""
        return runner.converted(model, build.level, build.disabled, self._to)

    def observe(self, model: bytes, build: Build) -> Sequence[str]:
        """Return nothing, because there are no passes."""
        return ()
