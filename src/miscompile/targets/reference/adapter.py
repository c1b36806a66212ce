"""The ONNX reference implementation in the worker."""

import numpy as np
import onnx
from onnx import checker
from onnx.reference import ReferenceEvaluator

from miscompile.core.case import Feed, Program
from miscompile.core.run import Build
from miscompile.core.tensor import Array, Tensor
from miscompile.graph.foreign import from_foreign, to_foreign


class Reference:
    """Interprets models; there is nothing to optimise."""

    def build(self, program: Program, build: Build) -> "Evaluation":
        """Read and check the model. Raises what onnx raises for a broken one or an operator it lacks."""
        del build
        model = onnx.load_model_from_string(program.payload)
        checker.check_model(model)
        return Evaluation(ReferenceEvaluator(model), program)

    def passes(self) -> tuple[str, ...]:
        """There are none."""
        return ()

    def fired(self, log: str) -> tuple[str, ...]:
        """Nothing fires."""
        del log
        return ()


class Evaluation:
    """A model that is ready to be interpreted."""

    def __init__(self, evaluator: ReferenceEvaluator, program: Program) -> None:
        self._evaluator, self._program = evaluator, program

    def run(self, feed: Feed) -> tuple[Tensor | None, ...]:
        """Run once on `feed`."""
        ports = self._program.inputs
        feeds = {port.name: _given(value) for port, value in zip(ports, feed, strict=True)}
        with np.errstate(all="ignore"):
            results = self._evaluator.run([port.name for port in self._program.outputs], feeds)
        return tuple(None if result is None else from_foreign(np.asarray(result)) for result in results)


def _given(value: Tensor) -> Array:
    return to_foreign(value).copy()  # some operators of the interpreter write to their operands
