"""ONNX Runtime (CPU): wrong values

what was seen, in a line

Seen with onnxruntime 1.99.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import ctypes
import math
import sys
from functools import cache

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper
from onnxruntime.capi import _pybind_state as native

WIDTHS = {16: 16, 17: 8, 18: 8, 19: 8, 20: 8, 21: 4, 22: 4, 23: 4, 24: 8, 25: 2, 26: 2, 27: 6, 28: 6}
"""Bits of an element for the types that numpy lacks, by their numbers in onnx.TensorProto, from BFLOAT16 on."""


@cache
def saturates():
    """Tell whether this processor sums products of bytes in 16 bits by default, as x86 without VNNI does."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            told = file.read()
    except OSError:
        return False
    return "avx2" in told and "vnni" not in told


def run_words(session, outputs, feed, types):
    """Run on a feed with element types that numpy lacks; their elements are words (one per element, in the low
    bits).

    `types` are the numbers of the inputs' types in onnx.TensorProto, where numpy lacks them. Return for each output the
    number of its type, and its elements or words; None for one that is missing.
    """
    memory = {name: packed(array, WIDTHS.get(types.get(name, 0), 0)) for name, array in feed.items()}
    values = {name: to_value(array, types.get(name)) for name, array in memory.items()}  # they are views of `memory`
    results = session.run_with_ort_values(values, outputs, None)
    return [from_value(value) if value.has_value() else None for value in results]


def packed(words, bits):
    """Return elements in a session's memory layout: narrow ones are packed in the first bytes."""
    words = np.require(words, requirements="C")
    if not 0 < bits < 8:
        return words
    lanes = np.unpackbits(words.view(np.uint8).reshape(-1, 1), axis=1, count=bits, bitorder="little")
    stream = np.packbits(lanes, bitorder="little")
    return np.concatenate([stream, np.zeros(words.size - stream.size, np.uint8)]).reshape(words.shape)


def to_value(array, kind):
    """Wrap an input; `kind` is the number of its element type if numpy lacks the type."""
    if kind is None:
        return ort.OrtValue.ortvalue_from_numpy(array)._ortvalue
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array, kind)._ortvalue


def from_value(value):
    """Return the number of an output's element type, and its elements; the binding does not convert foreign ones."""
    kind, shape = value.element_type(), tuple(value.shape())
    if kind not in WIDTHS:
        return kind, np.asarray(value.numpy())
    bits, count = WIDTHS[kind], math.prod(shape)
    data = ctypes.string_at(value.data_ptr(), -(-count * bits // 8)) if count else b""
    if bits >= 8:
        return kind, np.frombuffer(data, f"u{bits // 8}").reshape(shape)
    lanes = np.unpackbits(np.frombuffer(data, np.uint8), count=count * bits, bitorder="little").reshape(count, bits)
    return kind, np.packbits(lanes, axis=1, bitorder="little").reshape(shape)


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
    payload, options = model.SerializeToString(), session_options(level, threads=1)
    session = start(payload, options, off)
    names = [output.name for output in model.graph.output]
    results = [run_words(session, names, feed, types) for feed in feeds]
    return [[None if value is None else seen(*value) for value in result] for result in results]


def seen(kind, words):
    """Return an output as numbers; 16-bit brain floats are widened, other foreign types stay bits."""
    return (words.astype(np.uint32) << 16).view(np.float32) if kind == TensorProto.BFLOAT16 else words


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
