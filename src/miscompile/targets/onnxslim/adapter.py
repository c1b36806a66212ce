"""onnxslim in the worker."""

import re
from collections.abc import Sequence

import onnx
import onnxslim

from miscompile.core.run import Build
from miscompile.targets.onnxslim import runner
from miscompile.targets.optimisers.adapter import OptimiserAdapter

_MATCHED = re.compile(r"matched pattern (\w+)")


class OnnxSlim(OptimiserAdapter):
    """Calls onnxslim.slim, which removes inputs that nothing uses by design."""

    drops_inputs = True

    def optimise(self, model: bytes, build: Build) -> bytes:
        """Run what the build leaves on."""
        return runner.optimise(model, build.level, build.disabled)

    def observe(self, model: bytes, build: Build) -> Sequence[str]:
        """Optimise once more, with the log that `fired` reads."""
        onnxslim.slim(onnx.load_model_from_string(model), **runner.switches(build.disabled), verbose=True)
        return ()

    def fired(self, log: str) -> tuple[str, ...]:
        """Return the patterns that have matched; the other steps are not in the log."""
        return tuple(dict.fromkeys(_MATCHED.findall(log)))
