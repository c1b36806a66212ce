"""onnxsim: an invalid model with constant_folding

Constant folding computes a Cast of a constant to float8e4m3fn, and writes the result into the model as uint8.
onnx's checker refuses the model.

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
<ir_version: 9, opset_import: ["" : 19]>
g () => (float8e4m3fn y) <float c = {3}> {
    y = Cast <to = 17> (c)
}
""")
feed = {}


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
    if len(found) != 1:
        return "the output is missing"
    return None


print("onnxsim", onnxsim.__version__, "onnxruntime", ort.__version__, "onnx", onnx.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
found = problem()
if found:
    print("BUG:", found)
    sys.exit(1)
print("the bug does not show")
