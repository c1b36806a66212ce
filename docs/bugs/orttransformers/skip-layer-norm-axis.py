"""onnxruntime.transformers: an error with FusionSkipLayerNormalization

FusionSkipLayerNormalization makes a SkipLayerNormalization of Add and LayerNormalization whatever the axis
is. It normalises over the last axis, and its scale must have one axis.

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
g (float[1, 2, 3] x, float[1, 2, 3] u) => (float[1, 2, 3] y)
    <float[2, 3] w = {1, 2, 3, 4, 5, 6}, float[2, 3] b = {1, 2, 3, 4, 5, 6}> {
    t = Add (x, u)
    y = LayerNormalization <axis = 1> (t, w, b)
}
""")
feed = {name: np.arange(6, dtype=np.float32).reshape(1, 2, 3) for name in "xu"}


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
