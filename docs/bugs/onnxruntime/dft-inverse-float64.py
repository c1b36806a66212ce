"""ONNX Runtime (CPU): wrong values of DFT

The kernel of DFT divides the inverse transform by the length in float32, also for float64. The results of float64
have the precision of float32.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

graph = helper.make_graph(
    [helper.make_node("DFT", ["x"], ["y"], inverse=1)],
    "g",
    [helper.make_tensor_value_info("x", TensorProto.DOUBLE, [1, 3, 1])],
    [helper.make_tensor_value_info("y", TensorProto.DOUBLE, [1, 3, 2])],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model, full_check=True)
print("onnxruntime", ort.__version__, "onnx", onnx.__version__, "numpy", np.__version__)

x = np.ones((1, 3, 1), np.float64)
expected = np.fft.ifft(x[0, :, 0])
options = ort.SessionOptions()
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
(found,) = session.run(None, {"x": x})
gap = np.abs(found[0, :, 0] + 1j * found[0, :, 1] - expected).max()
print(f"numpy computes {expected[0].real!r}, ONNX Runtime {found[0, 0, 0]!r}")
if gap > 1e-12:
    print(f"BUG: the results differ by {gap:.3g}, and float64 has 16 digits")
    sys.exit(1)
print("the bug does not show")
