"""onnxoptimizer: wrong values with eliminate_common_subexpression

eliminate_common_subexpression merges two RandomUniformLike nodes of one input, which draw different numbers.
The difference of the two is zero everywhere after that.

Seen with onnxoptimizer 0.4.2, onnx 1.23.2, onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxoptimizer
import onnxruntime as ort
from onnx import parser

model = parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
g (float[64] x) => (float[64] y) {
    a = RandomUniformLike (x)
    b = RandomUniformLike (x)
    y = Sub (a, b)
}
""")
feed = {"x": np.ones(64, np.float32)}


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
        optimised = onnxoptimizer.optimize(copy)
    except Exception as error:
        return f"the optimiser raises {type(error).__name__}: {error}"
    try:
        onnx.checker.check_model(optimised, full_check=True)
        found = run(optimised)
    except Exception as error:
        return f"the optimised model is invalid: {error}"
    if np.count_nonzero(expected[0]) > 32 and not np.any(found[0]):
        return "the difference of two random numbers is always zero"
    return None


print("onnxoptimizer", onnxoptimizer.version.version, "onnxruntime", ort.__version__, "onnx", onnx.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
found = problem()
if found:
    print("BUG:", found)
    sys.exit(1)
print("the bug does not show")
