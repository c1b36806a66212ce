"""ONNX Runtime (CPU): an error with MatMul_BatchNormalization_Fusion

MatMul_BatchNormalization_Fusion removes a Reshape between the two nodes whose result is an output of the model.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("MatMul", ["c3", "c3"], ["v0"]),
    helper.make_node("Reshape", ["v0", "c2"], ["v1"]),
    helper.make_node("BatchNormalization", ["v1", "c1", "c1", "c1", "c1"], ["v2"]),
]
inputs = []
outputs = [
    helper.make_tensor_value_info("v1", TensorProto.FLOAT, [1, 1]),
    helper.make_tensor_value_info("v2", TensorProto.FLOAT, [1, 1]),
]
constants = [
    numpy_helper.from_array(np.array([0.0], np.float32), "c1"),
    numpy_helper.from_array(np.array([-1, 1], np.int64), "c2"),
    numpy_helper.from_array(np.array([[0.0]], np.float32), "c3"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)

feeds = [
    {},
]

# To blame: MatMul_BatchNormalization_Fusion.
CULPRITS = ["MatMul_BatchNormalization_Fusion"]


def run(level, off=()):
    """Build at `level` without the passes `off`; return the outputs for each feed."""
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    payload, providers = model.SerializeToString(), ["CPUExecutionProvider"]
    session = ort.InferenceSession(payload, options, providers, disabled_optimizers=list(off))
    return [session.run(None, feed) for feed in feeds]


def problem(want, got):
    """Say what is wrong with `got`, output 0 on feed 0; None if nothing is."""
    if want is None or got is None:
        return None if want is got else "the output is missing" if got is None else "an output appears"
    want, got = np.asarray(want), np.asarray(got)
    if (want.dtype, want.shape) != (got.dtype, got.shape):
        return f"{got.dtype} of shape {got.shape} instead of {want.dtype} of shape {want.shape}"
    return None


print("onnxruntime", ort.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
try:
    onnx.checker.check_model(model, full_check=True)
    print("onnx's checker accepts the model")
except Exception as error:
    print("onnx's checker says of the model:", " ".join(str(error).split()))
expected = run(ort.GraphOptimizationLevel.ORT_DISABLE_ALL)[0][0]
try:
    found = problem(expected, run(ort.GraphOptimizationLevel.ORT_ENABLE_ALL)[0][0])
except Exception as error:
    print("BUG: level full raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
healed = not problem(expected, run(ort.GraphOptimizationLevel.ORT_ENABLE_ALL, CULPRITS)[0][0])
print("without", *CULPRITS, "the results are", "right" if healed else "wrong as well")
if found:
    print("BUG: output 0 on feed 0:", found)
    sys.exit(1)
print("the bug does not show")
