"""ONNX Runtime (CPU): memory without bound

what was seen, in a line

Seen with onnxruntime 1.99.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import resource
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
    helper.make_node("MatMul", ["x", "w"], ["v"]),
    helper.make_node("Add", ["v", "b"], ["y"]),
]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 2])]
constants = [
    numpy_helper.from_array(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], np.float32), "w"),
    numpy_helper.from_array(np.array([0.1, -2.0], np.float32), "b"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)

feeds = [
    {"x": np.arange(6, dtype=np.float32).reshape((2, 3))},
]

OFF = []


def run(level, off=()):
    """Build at `level` without the passes `off`; return the outputs for each feed."""
    payload, options = model.SerializeToString(), session_options(level, threads=1)
    session = start(payload, options, off)
    names = [output.name for output in model.graph.output]
    return [run_arrays(session, names, feed) for feed in feeds]


print("onnxruntime", ort.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
try:
    onnx.checker.check_model(model, full_check=True)
    print("onnx's checker accepts the model")
except Exception as error:
    print("onnx's checker says of the model:", " ".join(str(error).split()))
run("off")
print("level off works")
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))  # bytes
try:
    run("full", OFF)
except Exception as error:
    print("BUG: level full raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
print("the bug does not show")
