"""The ONNX reference implementation in the worker."""

from collections.abc import Sequence
from functools import partial

import onnx.reference.ops  # noqa: F401 - by the zygote, so that no worker imports it at its first run

from miscompile.core.run import Build
from miscompile.ops.definitions.evaluator import evaluator
from miscompile.targets.plain import ByName, PlainAdapter
from miscompile.targets.reference.runner import checked_model, evaluate, read_model


class Reference(PlainAdapter):
    """Interprets models without optimisation: with our definitions of what onnx mistakes, at level `full` without."""

    def compile(self, model: bytes, build: Build) -> tuple[ByName, Sequence[str]]:
        """Read and check the model. Raises onnx's exceptions for an invalid one or an unsupported operator."""
        made = read_model(model) if build.level == "full" else evaluator(checked_model(model))
        return partial(evaluate, made), ()
