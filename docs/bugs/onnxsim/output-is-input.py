"""onnxsim: an invalid model with eliminate_optional_get_element

eliminate_optional_get_element replaces the output of the model by its input, which leaves the model without a
node. The input takes the name of the output, so that the model has no input `x` any more.
eliminate_sequence_at_construct and eliminate_loop_with_const_trip_count do the same.

Seen with onnxsim 0.8.1, onnx 1.23.2, onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
import onnxsim
from onnx import parser

model = parser.parse_model("""
<ir_version: 8, opset_import: ["" : 18]>
g (float x) => (float y) {
    o = Optional (x)
    y = OptionalGetElement (o)
}
""")
feed = {"x": np.array(1, np.float32)}


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
        optimised = onnxsim.simplify(copy)[0]
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


print("onnxsim", onnxsim.__version__, "onnxruntime", ort.__version__, "onnx", onnx.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
found = problem()
if found:
    print("BUG:", found)
    sys.exit(1)
print("the bug does not show")
