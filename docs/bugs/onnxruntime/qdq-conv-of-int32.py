"""ONNX Runtime (CPU): a valid model raises an error

QDQSelectorActionTransformer makes a QLinearConv of a Conv whose weights are dequantized from int32, which QLinearConv does
not take. It does the same for the operands of a Gemm and QGemm.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnx.parser
import onnxruntime as ort

MODEL = """
<ir_version: 10, opset_import: ["" : 21]>
g (uint8[1, 1, 4] x) => (uint8[1, 1, 4] y)
<float s = {1}, uint8 z = {0}, int32[1, 1, 1] w = {2}>
{
  a = DequantizeLinear (x, s, z)
  c = DequantizeLinear (w, s)
  d = Conv (a, c)
  y = QuantizeLinear (d, s, z)
}
"""

model = onnx.parser.parse_model(MODEL)
feed = {"x": np.ones(tuple(one.dim_value for one in model.graph.input[0].type.tensor_type.shape.dim), np.uint8)}


def run(level):
    """Build at `level` and return the first output."""
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return session.run(None, feed)[0]


print("onnxruntime", ort.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
expected = run(ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
try:
    run(ort.GraphOptimizationLevel.ORT_ENABLE_ALL)
except Exception as error:
    print("BUG: level full raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
print("the bug does not show")
