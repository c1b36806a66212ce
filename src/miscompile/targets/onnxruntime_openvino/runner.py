"""Build and execution of a model by ONNX Runtime with OpenVINO's provider; standalone scripts contain these
functions."""

import json
from collections.abc import Mapping

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

PROVIDER = "OpenVINOExecutionProvider"

GRAPH = {
    "off": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "full": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
}
"""The optimisations of ONNX Runtime itself at each level."""


UNREAD = ("bfloat16", "float8", "float4", "int4", "int2")
"""Parts of the names of element types whose tensors the binding returns as plain bytes."""


def start(model: bytes, level: str, threads: int = 1) -> ort.InferenceSession:
    """Return a session; without the provider at level off. Raises RuntimeError when the provider does not load."""
    options = ort.SessionOptions()
    options.graph_optimization_level = GRAPH[level]
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    if level == "off":
        return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    config = {"CPU": {"INFERENCE_NUM_THREADS": str(threads)}}
    # By default the plugin computes in bfloat16 where the processor can.
    config["CPU"]["INFERENCE_PRECISION_HINT"] = "f32"
    given = {"device_type": "CPU", "load_config": json.dumps(config)}
    session = ort.InferenceSession(
        model, options, providers=[PROVIDER, "CPUExecutionProvider"], provider_options=[given, {}]
    )
    if PROVIDER not in session.get_providers():
        raise RuntimeError(f"{PROVIDER} did not load")
    return session


def evaluate(
    session: ort.InferenceSession, feed: Mapping[str, NDArray[np.generic]]
) -> list[NDArray[np.generic] | None]:
    """Run on one feed; return the outputs in the order of the model.

    Raises TypeError for an input or an output with elements of a type that numpy lacks.
    """
    for array in feed.values():
        if array.dtype.isbuiltin != 1:
            raise TypeError(f"elements of {array.dtype.name} cannot be fed")
    for output in session.get_outputs():
        if any(name in output.type for name in UNREAD):
            raise TypeError(f"elements of {output.type} cannot be read")
    found: list[NDArray[np.generic] | None] = session.run(None, dict(feed))
    return found
