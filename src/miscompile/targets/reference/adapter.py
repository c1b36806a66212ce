"""The ONNX reference implementation in the worker."""

from collections.abc import Sequence
from functools import partial

from miscompile.core.run import Build
from miscompile.targets.plain import ByName, PlainAdapter
from miscompile.targets.reference.runner import evaluate, read_model


class Reference(PlainAdapter):
    """Interprets models; there is nothing to optimise."""

    def compile(self, model: bytes, build: Build) -> tuple[ByName, Sequence[str]]:
        """Read and check the model. Raises what onnx raises for a broken one or an operator it lacks."""
        del build
        return partial(evaluate, read_model(model)), ()
