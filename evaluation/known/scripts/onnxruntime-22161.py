"""Max of float16 drops NaN."""

import sys
from typing import Any

import numpy as np
import onnx.parser
import onnxruntime as ort

MODEL = """
<ir_version: 8, opset_import: ["" : 13]>
graph (float16[4] x, float16[4] z) => (float16[4] y)
{
  y = Max (x, z)
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
        "x": np.array([1, np.nan, 2, 0], np.float16),
        "z": np.array([np.nan, 1, 1, 1], np.float16),
    }
    return list(session.run(None, feeds))


def main() -> int:
    """Return 1 if the bug shows, 0 if not."""
    wanted = [np.array([np.nan, np.nan, 2, 1], np.float16)]
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
