"""Export of programs of torch to ONNX, and execution of the models; standalone scripts contain the functions that they
need."""

import logging
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import torch
from numpy.typing import NDArray

from miscompile.targets.torch.onnx_runner import place_of

OPTIMIZED = {"plain": False, "full": True}
"""Whether each level optimises the model."""


def configure() -> None:
    """Configure torch for one thread, and without messages of the exporters."""
    torch.set_num_threads(1)
    torch.backends.nnpack.set_flags(False)  # warns on many processors
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module=r"torch\.|onnxscript|miscompile|__main__")
    ort.set_default_logger_severity(4)


def start_runtime(model: bytes) -> ort.InferenceSession:
    """Return a session of ONNX Runtime that runs the model as it is."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def start_reference(model: bytes) -> Any:  # noqa: ANN401 - onnx's evaluator
    """Return a session of onnx's reference evaluator, in place of ONNX Runtime."""
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(onnx.load_model_from_string(model))


def run_model(session: Any, names: Sequence[str], arrays: Sequence[NDArray[np.generic]]) -> list[NDArray[np.generic]]:  # noqa: ANN401
    """Run a model with the inputs `names`; the exporters may have dropped some of the `arrays`."""
    return [np.asarray(value) for value in session.run(None, {name: arrays[place_of(name)] for name in names})]


def inputs_of(model: bytes) -> list[str]:
    """Return the names of a model's inputs that are no initialisers."""
    graph = onnx.load_model_from_string(model).graph
    constants = {constant.name for constant in graph.initializer}
    return [value.name for value in graph.input if value.name not in constants]
