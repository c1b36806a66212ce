"""BitShift by the width of the type or more shifts by the remainder."""

import sys
from typing import Any

import numpy as np
import onnx.parser
import onnxruntime as ort

MODEL = """
<ir_version: 8, opset_import: ["" : 11]>
graph (uint32[2] x, uint32[2] z) => (uint32[2] y)
{
  y = BitShift <direction = "LEFT"> (x, z)
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
        "x": np.array([255, 1], np.uint32),
        "z": np.array([32, 33], np.uint32),
    }
    return list(session.run(None, feeds))


def main() -> int:
    """Return 1 if the bug shows, 0 if not."""
    wanted = [np.zeros(2, np.uint32)]
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
