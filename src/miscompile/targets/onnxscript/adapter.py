"""onnxscript's optimiser in the worker."""

from collections.abc import Sequence

from miscompile.core.run import Build
from miscompile.targets.onnxscript import runner
from miscompile.targets.optimisers.adapter import OptimiserAdapter


class OnnxScript(OptimiserAdapter):
    """Calls onnxscript.optimizer.optimize, and the rules that one must ask for."""

    def optimise(self, model: bytes, build: Build) -> bytes:
        """Run what the build leaves on."""
        return runner.optimise(model, build.level, build.disabled)

    def observe(self, model: bytes, build: Build) -> Sequence[str]:
        """Return the default rules that apply to the model, each tried alone.

        A rule that only applies after another one is missing, and so are the other steps.
        """
        return runner.matching(model, build.disabled)
