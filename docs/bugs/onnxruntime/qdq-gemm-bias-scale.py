"""ONNX Runtime (CPU): wrong values with QDQSelectorActionTransformer

QDQSelectorActionTransformer makes a QGemm of a Gemm whose bias is dequantized, and takes the bias for one of the scale of
the first operand times that of the second, whatever its own scale is.

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
g (uint8[1, 2] x) => (float[1, 3] y)
<float sx = {0.5}, uint8 zx = {0}, uint8[2, 3] w = {1, 2, 3, 4, 5, 6}, float sw = {0.25}, uint8 zw = {0},
 int32[3] b = {1, 2, 3}, float sb = {2}>
{
  a = DequantizeLinear (x, sx, zx)
  c = DequantizeLinear (w, sw, zw)
  d = DequantizeLinear (b, sb)
  y = Gemm (a, c, d)
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
found = run(ort.GraphOptimizationLevel.ORT_ENABLE_ALL)
if not np.allclose(found, expected):
    print("BUG:", found.ravel(), "instead of", expected.ravel())
    sys.exit(1)
print("the bug does not show")
