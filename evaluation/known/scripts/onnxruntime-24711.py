"""The fusion to QLinearConv drops the scale of the bias."""

import sys
from typing import Any

import numpy as np
import onnx.parser
import onnxruntime as ort
from onnxruntime.capi import onnxruntime_pybind11_state as state

MODEL = """
<ir_version: 8, opset_import: ["" : 13]>
graph (uint8[1, 1, 3, 3] x) => (float[1, 1, 2, 2] y)
<float s = {0.5}, uint8 z = {3}, uint8[1, 1, 2, 2] w = {1, 2, 3, 4}, float bias_scale = {8}, int32[1] bias = {1}>
{
  d = DequantizeLinear (x, s, z)
  e = DequantizeLinear (w, s, z)
  b = DequantizeLinear (bias, bias_scale)
  c = Conv (d, e, b)
  q = QuantizeLinear (c, s, z)
  y = DequantizeLinear (q, s, z)
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
        "x": np.arange(9, dtype=np.uint8).reshape(1, 1, 3, 3),
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
        if not np.allclose(g, w, rtol=0.6, atol=0.6, equal_nan=True):
            print("BUG:", g.ravel()[:8], "instead of", w.ravel()[:8])
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
