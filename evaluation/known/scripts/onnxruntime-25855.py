"""LayerNormFusion takes a scale that is broadcast."""

import sys
from typing import Any

import numpy as np
import onnx.parser
import onnxruntime as ort
from onnxruntime.capi import onnxruntime_pybind11_state as state

MODEL = """
<ir_version: 8, opset_import: ["" : 13]>
graph (float[2, 3, 4] x) => (float[2, 3, 4] y)
<float two = {2}, float eps = {0.00001}, float[1] scale = {3}, float[1] bias = {1}>
{
  mean = ReduceMean <axes = [-1]> (x)
  d = Sub (x, mean)
  sq = Pow (d, two)
  var = ReduceMean <axes = [-1]> (sq)
  ve = Add (var, eps)
  sd = Sqrt (ve)
  n = Div (d, sd)
  m = Mul (n, scale)
  y = Add (m, bias)
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
        "x": np.sin(np.arange(24, dtype=np.float32)).reshape(2, 3, 4),
    }
    return list(session.run(None, feeds))


def main() -> int:
    """Return 1 if the bug shows, 0 if not."""
    wanted = outputs(ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
    try:
        got = outputs(ort.GraphOptimizationLevel.ORT_ENABLE_ALL)
    except ERRORS as error:
        print("BUG:", str(error)[:300])
        return 1
    if [g.shape for g in got] != [w.shape for w in wanted]:
        print("BUG: shapes", [g.shape for g in got], "instead of", [w.shape for w in wanted])
        return 1
    if [g.dtype for g in got] != [w.dtype for w in wanted]:
        print("BUG: types", [g.dtype for g in got], "instead of", [w.dtype for w in wanted])
        return 1
    for g, w in zip(got, wanted, strict=True):
        if not np.allclose(g, w, rtol=1e-4, atol=1e-4, equal_nan=True):
            print("BUG:", g.ravel()[:8], "instead of", w.ravel()[:8])
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
