"""ONNX Runtime (CPU): wrong values

what was seen, in a line

Seen with onnxruntime 1.99.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import base64
import sys
from functools import cache

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.capi import _pybind_state as native


@cache
def saturates():
    """Tell whether this processor sums products of bytes in 16 bits by default, as x86 without VNNI does."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            told = file.read()
    except OSError:
        return False
    return "avx2" in told and "vnni" not in told


def run_arrays(session, outputs, feed):
    """Run on one feed; return the outputs of these names, None for a missing one."""
    found = session.run(outputs, feed, None)
    return found


LEVELS = {
    "off": ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
    "basic": ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    "extended": ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    "layout": getattr(ort.GraphOptimizationLevel, "ORT_ENABLE_LAYOUT", ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED),
    "full": ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
}


def session_options(level, threads=1):
    """Return options for `level` that make results independent of the processor."""
    options = ort.SessionOptions()
    options.graph_optimization_level = LEVELS[level]
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.enable_cpu_mem_arena = False  # small models build and run faster without
    options.enable_mem_pattern = False
    # The default quantises the other operand of products with dequantised weights, by design; ask for float32.
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
    if saturates():
        options.add_session_config_entry("session.x64quantprecision", "1")
    return options


def start(source, options, disabled):
    """Return a session without the passes `disabled` for a model, given as bytes or as the path of a file."""
    session = native.InferenceSession(options, source, isinstance(source, str), False)
    session.initialize_session(["CPUExecutionProvider"], [{}], set(disabled))
    return session


nodes = [
    helper.make_node("Div", ["x", "root"], ["a"]),
    helper.make_node("Erf", ["a"], ["b"]),
    helper.make_node("Add", ["b", "one"], ["c"]),
    helper.make_node("Mul", ["x", "c"], ["d"]),
    helper.make_node("Mul", ["d", "half"], ["y"]),
]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [100])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [100])]
constants = [
    numpy_helper.from_array(np.array(1.4142135, np.float32), "root"),
    numpy_helper.from_array(np.array(1.0, np.float32), "one"),
    numpy_helper.from_array(np.array(0.5, np.float32), "half"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)

feeds = [
    {
        "x": np.frombuffer(
            base64.b64decode(
                "AABAwAgfPMAQPjjAF100wB98MMAnmyzAL7oowDbZJMA++CDARhcdwE42GcBVVRXAXXQRwGWTDcBtsgnAdNEFwHzwAcAIH/y/F130"
                "vyeb7L822eS/Rhfdv1VV1b9lk82/dNHFv4QPvr+TTba/o4uuv7LJpr/CB5+/0UWXv+GDj7/wwYe/AACAvx98cL8++GC/XXRRv3zw"
                "Qb+bbDK/uugiv9lkE7/44AO/L7rovm2yyb6rqqq+6aKLvk42Wb7KJhu+jC66vRA++LwQPvg8jC66PcomGz5ONlk+6aKLPquqqj5t"
                "ssk+L7roPvjgAz/ZZBM/uugiP5tsMj988EE/XXRRPz74YD8ffHA/AACAP/DBhz/hg48/0UWXP8IHnz+yyaY/o4uuP5NNtj+ED74/"
                "dNHFP2WTzT9VVdU/RhfdPzbZ5D8nm+w/F130Pwgf/D988AFAdNEFQG2yCUBlkw1AXXQRQFVVFUBONhlARhcdQD74IEA22SRAL7oo"
                "QCebLEAffDBAF100QBA+OEAIHzxAAABAQA=="
            ),
            dtype=np.float32,
        ).reshape((100,)),
    },
]

OFF = []


def run(level, off=()):
    """Build at `level` without the passes `off`; return the outputs for each feed."""
    payload, options = model.SerializeToString(), session_options(level, threads=1)
    session = start(payload, options, off)
    names = [output.name for output in model.graph.output]
    return [run_arrays(session, names, feed) for feed in feeds]


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
try:
    onnx.checker.check_model(model, full_check=True)
    print("onnx's checker accepts the model")
except Exception as error:
    print("onnx's checker says of the model:", " ".join(str(error).split()))
expected = run("off")[0][0]
found = problem(expected, run("full", OFF)[0][0])
if found:
    print("BUG: output 0 on feed 0:", found)
    sys.exit(1)
print("the bug does not show")
