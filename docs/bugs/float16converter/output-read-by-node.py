"""onnxconverter-common: an invalid model with a step that always runs

With keep_io_types the converter casts the outputs of the model back to float32. A node that reads an output
of the model gets the float32 value, and its result is declared as float16.

Seen with onnxconverter-common 1.16.0, onnx 1.23.2, onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxconverter_common
import onnxruntime as ort
from onnx import parser
from onnxconverter_common import float16

model = parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
g (float[2] x) => (float[2] y, float[2] z) {
    y = Neg (x)
    z = Abs (y)
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
        optimised = float16.convert_float_to_float16(copy, max_finite_val=65504.0, keep_io_types=True)
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
        if not np.allclose(want, got, rtol=1e-2, atol=1e-2, equal_nan=True):
            return f"{got.tolist()} instead of {want.tolist()}"
    return None


print(
    "onnxconverter-common", onnxconverter_common.__version__, "onnxruntime", ort.__version__, "onnx", onnx.__version__
)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
found = problem()
if found:
    print("BUG:", found)
    sys.exit(1)
print("the bug does not show")
