"""ONNX Runtime (CPU): wrong values

what was seen, in a line

Seen with onnxruntime 1.99.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import ctypes
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

nodes = [
    helper.make_node("Cast", ["x"], ["v"], to=1),
    helper.make_node("Cast", ["v"], ["y"], to=16),
]
inputs = [helper.make_tensor_value_info("x", TensorProto.BFLOAT16, [3])]
outputs = [helper.make_tensor_value_info("y", TensorProto.BFLOAT16, [3])]
graph = helper.make_graph(nodes, "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)

feeds = [
    {"x": np.array([16256, 16416, 49216], np.uint16)},
]

# Inputs that numpy has no type for: their bits, and the type that they stand for.
types = {
    "x": TensorProto.BFLOAT16,
}

OFF = []


def run(level, off=()):
    """Build at `level` without the passes `off`; return the outputs for each feed."""
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"], disabled_optimizers=list(off)
    )
    names = [output.name for output in session.get_outputs()]
    results = [session.run_with_ort_values(names, {k: value_of(k, v) for k, v in feed.items()}) for feed in feeds]
    return [[array_of(value) for value in result] for result in results]


def value_of(name, array):
    """Wrap an input, with the element type that numpy lacks if it has one."""
    if name in types:
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array, types[name])
    return ort.OrtValue.ortvalue_from_numpy(array)


def array_of(value):
    """Return an output as numbers; 16-bit brain floats are widened, other foreign types stay bits."""
    if not value.has_value():
        return None
    kind, shape = value.element_type(), tuple(value.shape())
    wide = {TensorProto.BFLOAT16: np.uint16}
    try:
        return value.numpy()
    except RuntimeError:
        storage = np.dtype(wide.get(kind, np.uint8))
    size = int(np.prod(shape)) * storage.itemsize
    bits = np.frombuffer(ctypes.string_at(value.data_ptr(), size), storage).reshape(shape)
    return (bits.astype(np.uint32) << 16).view(np.float32) if kind == TensorProto.BFLOAT16 else bits


# Every correct implementation gives the same bits here, so no difference is allowed.
TOLERANCE = 0.0


def problem(want, got):
    """Say what is wrong with `got`, output 0 on feed 0; None if nothing is."""
    if want is None or got is None:
        return None if want is got else "the output is missing" if got is None else "an output appears"
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
expected = run(ort.GraphOptimizationLevel.ORT_DISABLE_ALL)[0][0]
found = problem(expected, run(ort.GraphOptimizationLevel.ORT_ENABLE_ALL, OFF)[0][0])
if found:
    print("BUG: output 0 on feed 0:", found)
    sys.exit(1)
print("the bug does not show")
