"""ONNX Runtime with OpenVINO's provider in the worker."""

from collections.abc import Sequence
from functools import partial

import onnxruntime as ort

from miscompile.core.run import Build
from miscompile.targets.onnxruntime_openvino.runner import evaluate, start
from miscompile.targets.plain import ByName, PlainAdapter


class OpenVinoProvider(PlainAdapter):
    """Builds sessions with the provider, and without it at level off."""

    def __init__(self) -> None:
        super().__init__()
        ort.set_default_logger_severity(4)

    def compile(self, model: bytes, build: Build) -> tuple[ByName, Sequence[str]]:
        """Start a session. Raises ONNX Runtime's exceptions."""
        return partial(evaluate, start(model, build.level, build.threads)), ()
