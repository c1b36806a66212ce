"""onnxscript.optimizer: wrong values with fold

Constant folding leaves out operators that draw random numbers, by a list that lacks Bernoulli. Bernoulli of a
constant becomes a constant, and the optimised model gives the same numbers in each run.

Seen with onnxscript 0.7.2, onnx 1.23.2, onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
import onnxscript
import onnxscript.optimizer
from onnx import parser

model = parser.parse_model("""
<ir_version: 8, opset_import: ["" : 18]>
g (float[8] x) => (float[8] y) <float[8] half = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5}> {
    b = Bernoulli (half)
    y = Add (x, b)
}
""")
feed = {"x": np.zeros(8, np.float32)}


def run(model):
    """Execute a model with ONNX Runtime, all of whose own optimisations are off; return the outputs."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    taken = {value.name for value in session.get_inputs()}
    fed = {name: array for name, array in feed.items() if name in taken}
    return session.run(None, fed)[0], session.run(None, fed)[0]


def problem():
    """Say what is wrong with the optimised model; None if nothing is."""
    expected = run(model)
    print("ONNX Runtime, which optimises nothing here, runs the original model")
    copy = onnx.ModelProto.FromString(model.SerializeToString())
    try:
        optimised = onnxscript.optimizer.optimize(copy)
    except Exception as error:
        while error.__cause__:
            error = error.__cause__
        return f"the optimiser raises {type(error).__name__}: {error}"
    try:
        onnx.checker.check_model(optimised, full_check=True)
        found = run(optimised)
    except Exception as error:
        return f"the optimised model is invalid: {error}"
    if not np.array_equal(*expected) and np.array_equal(*found):
        return "two runs give the same random numbers"
    return None


print("onnxscript", onnxscript.__version__, "onnxruntime", ort.__version__, "onnx", onnx.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
found = problem()
if found:
    print("BUG:", found)
    sys.exit(1)
print("the bug does not show")
