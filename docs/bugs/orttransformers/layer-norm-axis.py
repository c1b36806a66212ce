"""onnxruntime.transformers: wrong values with FusionLayerNormalization

FusionLayerNormalization makes a LayerNormalization of its formula whatever the axes of ReduceMean are. The
formula normalises over axis 0 here, and LayerNormalization over the last axis.

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
g (float[2, 3] x) => (float[2, 3] y)
    <float two = {2}, float epsilon = {1e-5}, float[3] w = {2, 1, 1}, float[3] b = {1, 2, 3}> {
    m = ReduceMean <axes = [0]> (x)
    d = Sub (x, m)
    s = Pow (d, two)
    v = ReduceMean <axes = [0]> (s)
    e = Add (v, epsilon)
    r = Sqrt (e)
    n = Div (d, r)
    k = Mul (n, w)
    y = Add (k, b)
}
""")
feed = {"x": np.arange(6, dtype=np.float32).reshape(2, 3)}


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
