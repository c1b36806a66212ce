"""onnxruntime.transformers: another shape or type with FusionGelu

FusionGelu makes a Gelu of its formula if the constants have one element. The factor 0.5 of shape [1, 1, 1]
gives the result three axes. Gelu keeps the shape of its operand.

Seen with onnxruntime 1.32.0, onnx 1.23.2, onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import parser
from onnxruntime.transformers.optimizer import optimize_by_fusion

model = parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
g (float[2] x) => (float[1, 1, 2] y) <float two = {1.4142135}, float one = {1}, float[1, 1, 1] half = {0.5}> {
    a = Div (x, two)
    b = Erf (a)
    c = Add (b, one)
    d = Mul (x, c)
    y = Mul (d, half)
}
""")
feed = {"x": np.ones(2, np.float32)}


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
        optimised = optimize_by_fusion(copy, "bert").model
    except Exception as error:
        return f"the optimiser raises {type(error).__name__}: {error}"
    try:
        found = run(optimised)
    except Exception as error:
        return f"the optimised model fails: {error}"
    for want, got in zip(expected, found):
        if (want.dtype, want.shape) != (got.dtype, got.shape):
            return f"{got.dtype} of shape {got.shape} instead of {want.dtype} of shape {want.shape}"
        if not np.allclose(want, got, rtol=1e-3, atol=1e-3, equal_nan=True):
            return f"{got.tolist()} instead of {want.tolist()}"
    return None


print("onnxruntime.transformers", "onnxruntime", ort.__version__, "onnx", onnx.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
found = problem()
if found:
    print("BUG:", found)
    sys.exit(1)
print("the bug does not show")
