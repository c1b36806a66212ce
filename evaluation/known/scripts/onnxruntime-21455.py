"""Max of NaN and a tensor of one element is that element."""

import sys
from typing import Any

import numpy as np
import onnx.parser
import onnxruntime as ort

MODEL = """
<ir_version: 8, opset_import: ["" : 13]>
graph (float[3, 1] x) => (float[3, 1] y)
<float[1] bound = {10}>
{
  y = Min (x, bound)
}
"""


def outputs(level: ort.GraphOptimizationLevel) -> list[np.ndarray[Any, Any]]:
    """Return the outputs of the model on the CPU at an optimisation level."""
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    model = onnx.parser.parse_model(MODEL)
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feeds = {
        "x": np.array([[1], [np.nan], [20]], np.float32),
    }
    return list(session.run(None, feeds))


def main() -> int:
    """Return 1 if the bug shows, 0 if not."""
    wanted = [np.array([[1], [np.nan], [10]], np.float32)]
    got = outputs(ort.GraphOptimizationLevel.ORT_ENABLE_ALL)
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
