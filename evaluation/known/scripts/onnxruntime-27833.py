"""Mod of integers by zero ends the process."""

import subprocess
import sys
from typing import Any

import numpy as np
import onnx.parser
import onnxruntime as ort

MODEL = """
<ir_version: 8, opset_import: ["" : 14]>
graph (int32[4] x, int32[4] z) => (int32[4] y)
{
  y = Mod (x, z)
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
        "x": np.arange(4, dtype=np.int32),
        "z": np.array([1, 0, 2, 0], np.int32),
    }
    return list(session.run(None, feeds))


def main() -> int:
    """Return 1 if the bug shows, 0 if not."""
    if sys.argv[1:] == ["child"]:
        outputs(ort.GraphOptimizationLevel.ORT_ENABLE_ALL)
        return 0
    code = subprocess.run([sys.executable, __file__, "child"], check=False, capture_output=True).returncode
    if code < 0:
        print("BUG: the process died of signal", -code)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
