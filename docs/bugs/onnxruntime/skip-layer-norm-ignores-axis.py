"""ONNX Runtime (CPU): wrong values with SkipLayerNormFusion

SkipLayerNormFusion ignores the axis of a LayerNormalization, and normalizes over the last axis alone.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("Add", ["x0", "x0"], ["v0"]),
    helper.make_node("LayerNormalization", ["v0", "c0"], ["v1"], axis=0),
]
inputs = [helper.make_tensor_value_info("x0", TensorProto.FLOAT, [1, 2, 1])]
outputs = [helper.make_tensor_value_info("v1", TensorProto.FLOAT, [1, 2, 1])]
constants = [
    numpy_helper.from_array(np.array([1.0], np.float32), "c0"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)

feeds = [
    {"x0": np.array([[[0.0], [1.0]]], np.float32)},
]

# To blame: SkipLayerNormFusion.
CULPRITS = ["SkipLayerNormFusion"]


def run(level, off=()):
    """Build at `level` without the passes `off`; return the outputs for each feed."""
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    payload, providers = model.SerializeToString(), ["CPUExecutionProvider"]
    session = ort.InferenceSession(payload, options, providers, disabled_optimizers=list(off))
    return [session.run(None, feed) for feed in feeds]


# Rounding every float operation differently moves no element of this graph by half as much.
TOLERANCE = 3.8147e-05


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
