"""onnxruntime.transformers.optimizer in the worker."""

import logging
from collections.abc import Sequence

from miscompile.core.run import Build
from miscompile.targets.optimisers.adapter import EXECUTORS, OptimiserAdapter
from miscompile.targets.orttransformers import runner
from miscompile.targets.orttransformers.about import FUSIONS


class OrtTransformers(OptimiserAdapter):
    """Applies the fusions for one type of model."""

    drops_inputs = True

    def __init__(self, executor: str = EXECUTORS[0], model: str = "bert") -> None:
        super().__init__(executor)
        self._kind = model
        logging.getLogger("onnxruntime.transformers").setLevel(logging.ERROR)

    def optimise(self, model: bytes, build: Build) -> bytes:
        """Apply the fusions that the build leaves on."""
        return runner.fused(model, build.level, build.disabled, self._kind)

    def observe(self, model: bytes, build: Build) -> Sequence[str]:
        """Return the fusions without which the result is another one."""
        whole = self.optimise(model, build)
        return [
            name
            for name in FUSIONS
            if name not in build.disabled
            and runner.fused(model, build.level, {*build.disabled, name}, self._kind) != whole
        ]
