"""OnnxSlim: an invalid model with shape_inference

An Einsum whose equation has no arrow sorts the axes of its result by the alphabet. The shape inference takes
them in the order in which they appear. onnx's checker refuses the model.

Seen with onnxslim 0.1.98, onnx 1.23.2, onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
import onnxslim
from onnx import parser

model = parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 3] x) => (float[3, 2] y) {
    t = Einsum <equation = "ba"> (x)
    y = Neg (t)
}
""")
feed = {"x": np.ones((2, 3), np.float32)}


def run(model):
    """Execute a model with ONNX Runtime, all of whose own optimisations are off; return the outputs."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    taken = {value.name for value in session.get_inputs()}
    fed = {name: array for name, array in feed.items() if name in taken}
    return session.run(None, fed)


def problem():
    """Say what is wrong with the optimised model; None if nothing is."""
    expected = run(model)
    print("ONNX Runtime, which optimises nothing here, runs the original model")
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    try:
        optimised = onnxslim.slim(copy)
    except Exception as error:
        return f"the optimiser raises {type(error).__name__}: {error}"
    try:
        onnx.checker.check_model(optimised, full_check=True)
        found = run(optimised)
    except Exception as error:
        return f"the optimised model is invalid: {error}"
    for want, got in zip(expected, found):
        if (want.dtype, want.shape) != (got.dtype, got.shape):
            return f"{got.dtype} of shape {got.shape} instead of {want.dtype} of shape {want.shape}"
        if not np.array_equal(want, got):
            return f"{got.tolist()} instead of {want.tolist()}"
    return None


print("onnxslim", onnxslim.__version__, "onnxruntime", ort.__version__, "onnx", onnx.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
found = problem()
if found:
    print("BUG:", found)
    sys.exit(1)
print("the bug does not show")
