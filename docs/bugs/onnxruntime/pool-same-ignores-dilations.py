"""ONNX Runtime (CPU): another shape of MaxPool

MaxPool, AveragePool and LpPool with `auto_pad` SAME_UPPER or SAME_LOWER ignore the dilations when they compute the
padding.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("MaxPool", ["c0"], ["v0"], kernel_shape=[3], dilations=[2], auto_pad="SAME_LOWER"),
]
inputs = []
outputs = [helper.make_tensor_value_info("v0", TensorProto.FLOAT, [1, 1, 2])]
constants = [
    numpy_helper.from_array(np.array([[[0.0, 0.0]]], np.float32), "c0"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)

feeds = [
    {},
]



def run(level, off=()):
    """Build at `level` without the passes `off`; return the outputs for each feed."""
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    payload, providers = model.SerializeToString(), ["CPUExecutionProvider"]
    session = ort.InferenceSession(payload, options, providers, disabled_optimizers=list(off))
    return [session.run(None, feed) for feed in feeds]


def problem(got):
    """Say how the type of an output differs from the one that ONNX infers; None if it does not."""
    got, (dtype, shape) = np.asarray(got), DECLARED
    same = len(shape) == got.ndim and all(want in (None, have) for want, have in zip(shape, got.shape))
    return None if same and got.dtype == dtype else f"{got.dtype} of shape {got.shape} instead of {dtype} of {shape}"


# The output's type by ONNX's own inference, which the check below repeats.
DECLARED = ("float32", (1, 1, 2))
print("onnxruntime", ort.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
found = problem(run(ort.GraphOptimizationLevel.ORT_DISABLE_ALL)[0][0])
if found:
    print("BUG: output 0 on feed 0:", found)
    sys.exit(1)
print("the bug does not show")
