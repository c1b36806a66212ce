"""ReduceSum fails over an axis of size 0 that it does not keep."""

import sys
from typing import Any

import numpy as np
import onnx.parser
import onnxruntime as ort
from onnxruntime.capi import onnxruntime_pybind11_state as state

MODEL = """
<ir_version: 8, opset_import: ["" : 13]>
graph (float[2, 0] x) => (float[2] y)
<int64[1] axes = {1}>
{
  y = ReduceSum <keepdims = 0> (x, axes)
}
"""

ERRORS = (state.Fail, state.RuntimeException, state.InvalidGraph, state.InvalidArgument, state.NotImplemented)


def outputs(level: ort.GraphOptimizationLevel) -> list[np.ndarray[Any, Any]]:
    """Return the outputs of the model on the CPU at an optimisation level."""
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    model = onnx.parser.parse_model(MODEL)
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feeds = {
        "x": np.zeros((2, 0), np.float32),
    }
    return list(session.run(None, feeds))


def main() -> int:
    """Return 1 if the bug shows, 0 if not."""
    try:
        outputs(ort.GraphOptimizationLevel.ORT_ENABLE_ALL)
    except ERRORS as error:
        print("BUG:", str(error)[:300])
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
