"""The ONNX reference implementation in the worker."""

from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import checker
from onnx.reference import ReferenceEvaluator

from miscompile.core.run import Build
from miscompile.core.tensor import Array
from miscompile.targets.plain import ByName, PlainAdapter


class Reference(PlainAdapter):
    """Interprets models; there is nothing to optimise."""

    def compile(self, model: bytes, build: Build) -> tuple[ByName, Sequence[str]]:
        """Read and check the model. Raises what onnx raises for a broken one or an operator it lacks."""
        del build
        read = onnx.load_model_from_string(model)
        checker.check_model(read)
        evaluator, names = ReferenceEvaluator(read), [output.name for output in read.graph.output]

        def run(feed: Mapping[str, Array]) -> Sequence[Array | None]:
            with np.errstate(all="ignore"):
                found: Sequence[Array | None] = evaluator.run(names, dict(feed))
            return found

        return run, ()
