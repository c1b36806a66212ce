"""ONNX Runtime (CPU): wrong values with TransposeOptimizer

TransposeOptimizer quantizes a value for a QuantizeLinear, and other readers of the value and the caller get the
quantized one.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("Reshape", ["x0", "c0"], ["v0"]),
    helper.make_node("Transpose", ["v0"], ["v1"]),
    helper.make_node("QuantizeLinear", ["v1", "c1"], ["v2"]),
    helper.make_node("DequantizeLinear", ["c2", "c1"], ["v3"]),
]
inputs = [helper.make_tensor_value_info("x0", TensorProto.FLOAT, [20])]
outputs = [
    helper.make_tensor_value_info("v0", TensorProto.FLOAT, [2, 5, 2]),
    helper.make_tensor_value_info("v2", TensorProto.UINT8, [2, 5, 2]),
    helper.make_tensor_value_info("v3", TensorProto.FLOAT, []),
]
constants = [
    numpy_helper.from_array(np.array([2, 5, 2], np.int64), "c0"),
    numpy_helper.from_array(np.array(1.0, np.float32), "c1"),
    numpy_helper.from_array(np.array(0, np.int32), "c2"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)

feeds = [
    {
        "x0": np.array(
            [0.0, -2.0, -1.0, -0.0, 0.0, 0.0, 1.0, 1.0, -1.0, -0.0, -1.0, 1.0, 1.0, -1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            np.float32,
        ),
    },
]

# To blame: TransposeOptimizer, TransposeOptimizer_CPUExecutionProvider.
CULPRITS = ["TransposeOptimizer", "TransposeOptimizer_CPUExecutionProvider"]


def run(level, off=()):
    """Build at `level` without the passes `off`; return the outputs for each feed."""
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    payload, providers = model.SerializeToString(), ["CPUExecutionProvider"]
    session = ort.InferenceSession(payload, options, providers, disabled_optimizers=list(off))
    return [session.run(None, feed) for feed in feeds]


# Every correct implementation gives the same bits here, so no difference is allowed.
TOLERANCE = 0.0


def problem(want, got):
    """Say what is wrong with `got`, output 0 on feed 0; None if nothing is."""
    want, got = np.asarray(want), np.asarray(got)
    if (want.dtype, want.shape) != (got.dtype, got.shape):
        return f"{got.dtype} of shape {got.shape} instead of {want.dtype} of shape {want.shape}"
    if want.dtype == object:
        return None if (want == got).all() else f"{got.tolist()} instead of {want.tolist()}"
    wide = np.result_type(want.dtype, np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.atleast_1d(np.abs(want.astype(wide) - got.astype(wide))).ravel()
    left, right = want.ravel(), got.ravel()
    gap[(left == right) | ((left != left) & (right != right))] = 0  # equal, or both not a number
    gap[np.isnan(gap)] = np.inf
    wrong = gap > TOLERANCE if TOLERANCE or want.dtype.kind in "fc" else left != right
    if not wrong.any():
        return None
    worst = int(np.argmax(np.where(wrong, gap, -1)))
    return (
        f"{np.count_nonzero(wrong)} of {gap.size} elements are wrong by more than {TOLERANCE:g}\n"
        f"  largest difference {gap[worst]:.6g} at flat index {worst}: {right[worst]} instead of {left[worst]}\n"
        f"  expected from there {left[worst : worst + 4].tolist()}\n"
        f"  actual              {right[worst : worst + 4].tolist()}"
    )


print("onnxruntime", ort.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
try:
    onnx.checker.check_model(model, full_check=True)
    print("onnx's checker accepts the model")
except Exception as error:
    print("onnx's checker says of the model:", " ".join(str(error).split()))
expected = run(ort.GraphOptimizationLevel.ORT_DISABLE_ALL)[0][0]
found = problem(expected, run(ort.GraphOptimizationLevel.ORT_ENABLE_ALL)[0][0])
healed = not problem(expected, run(ort.GraphOptimizationLevel.ORT_ENABLE_ALL, CULPRITS)[0][0])
print("without", *CULPRITS, "the results are", "right" if healed else "wrong as well")
if found:
    print("BUG: output 0 on feed 0:", found)
    sys.exit(1)
print("the bug does not show")
