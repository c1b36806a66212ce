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


body1_nodes = [
    helper.make_node("Neg", ["s"], ["r"]),
]
body1_inputs = []
body1_outputs = [helper.make_tensor_value_info("r", TensorProto.FLOAT, [2, 6])]
body1_graph = helper.make_graph(body1_nodes, "then", body1_inputs, body1_outputs)
body2_nodes = [
    helper.make_node("Abs", ["s"], ["q"]),
]
body2_inputs = []
body2_outputs = [helper.make_tensor_value_info("q", TensorProto.FLOAT, [2, 6])]
body2_graph = helper.make_graph(body2_nodes, "else", body2_inputs, body2_outputs)
functions = [
    helper.make_function(
        "own",
        "Twice",
        ["a"],
        ["b"],
        [
            helper.make_node("Add", ["a", "a"], ["b"]),
        ],
        [helper.make_opsetid("", 18)],
        [],
    ),
]
nodes = [
    helper.make_node("Slice", ["large", "zero", "two"], ["c"]),
    helper.make_node("Where", ["pick", "odd", "c"], ["d"]),
    helper.make_node("Twice", ["d"], ["e"], domain="own"),
    helper.make_node("Clip", ["e"], ["f"], name="clip 'it'"),
    helper.make_node("Gemm", ["f", "f"], ["g"], alpha=0.1, transB=1),
    helper.make_node("ReduceSum", ["g"], ["h"], keepdims=1),
    helper.make_node("Add", ["f", "h"], ["s"]),
    helper.make_node("If", ["yes"], ["t"], then_branch=body1_graph, else_branch=body2_graph),
    helper.make_node("Transpose", ["t"], ["u"], perm=[1, 0]),
    helper.make_node("Concat", ["u", "x"], ["y"], axis=0),
]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 2])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 2])]
constants = [
    numpy_helper.from_array(np.array([np.nan, np.inf, -0.0, 1e-45, 0.1, 3e38], np.float32), "odd"),
    numpy_helper.from_array(
        np.frombuffer(
            base64.b64decode(
                "AAAAAAAAgD8AAABBAADYQQAAgEIAAPpCAABYQwCAq0MAAABEAEA2RAAAQEAAAKdDAMA2RAAAS0MAgDtEAADAQwAA2EIAQGdEAMBT"
                "RABAW0QAAMBBAACQQwCAKUQAAEtDAMBXRACAJ0QAwBxEAAA5RAAAkEEAgOZDAACiQgCAW0QAAFhEAAA0QgCA0kMAAIBAAIBGRADA"
                "SEQAABRCAAD4QwAAQEMAAABDAACbQwAAOkQAgNtDAADHQwDAHEQAAAdDAIBmRAAAQEAAgLtDAABIQgAA+EEAAKJDAMBpRABAWkQA"
                "ABBDAAA7RABALkQAgHhEAAAiRACAJUQAADRCAEBHRACAaEQAAOFDAAC0QwCAJkQAgLxDAAD4QwAAAEIAQHZEAAC5QwAAO0MAAN1D"
                "AAAQQwAAlEMAAGJEAEB0RABAAkQAwAZEAAAgQgAA2EEAAP1DAADzQwCAckQAwHFEAIDxQwBAAkQAALRCAABBQwAAUUQAAPhBAMBB"
                "RAAApkIAAG5EAIDGQwAA0UMAAMBBAABaQwAAEEEAAMhDAADIQwAAcEEAAHhDAADYQgCAFUQAwDVEAID6QwDAZkQAAKBAAAA6RAAA"
                "G0MAAG5DAAAAQAAA4UMAwBNEAIDXQwBAc0QAAGVDAABHQwBAXkQAgJtDAIDoQwAAtEMAAABAAADFQwBACEQAgOZDAAAUQwBAGEQA"
                "QFVEAIBdRACAMkQAgKtDAABCRAAAyEEAALRCAEB0RACALkQAAIBDAIAjRABAYUQAAMBAAIBxRAAAR0QAgPlDAACiQgBACEQAAGFE"
                "AAAbQwAAm0MAALtDAICwQwAAfUMAAKBCAEBRRAAABkQAADRDAABBRAAAokMAAFFEAACgQwAAQkQAAFhDAAAgRAAAcEIAAO5DAEBg"
                "RAAApkMAQENEAACAQwBAPUQAAJRDAEBaRAAA+kMAADRDAABlRAAANEQAwBREAMAIRACAEUQAgDBEAEBnRAAAeEMAwChEAABaQwBA"
                "W0QAACZEAIARRABAH0QAwFBEAAA5QwDAK0QAgLBDAAA6QwAAQEMAgLxDAMA6RACAm0MAAJBCAAAQQgAAUUMAQBVEAABRQwAAQEIA"
                "APBCAIDXQwDAdkQAQEdEAABYRAAARUMAAEdEAEAoRADAT0QAgItDAACgQQAAcEIAgMpDAACAQgAAIEIAgKlDAMBxRABAaUQAAHND"
                "AEBgRADAYkQAgItDAACAQQAA+EIAQBhEAADwQwAAOUQAAMdDAIDkQwDAZkQAQElEAADaQgDAUEQAwHhEAMAURACAH0QAAAVDAACm"
                "QgAA90MAgLtDAEA2RABADUQAgF1EAEAvRAAAgEEAwE9EAAAhQwAAwEAAALpDAACGQwBALkQAACdEAAA7QwCAgEMAAF1EAACgQgCA"
                "UkQAADlDAADaQgAAG0QAwDVEAADaQwCAO0QAgClEAABiQwCAxkMAAEhDAIAfRAAANEQAAOJDAEBRRAAAXUQAwBVEAEB2RAAAWEIA"
                "wEhEAAB3QwAAwUMAAGVDAMBCRAAAQEIAABBCAEA7RAAAR0MAAMFDAICfQwAAgEAAAN5DAAAiRACAG0QAALpDAEBhRAAAXUMAAKZD"
                "AABzQwBAb0QAAPNDAIBPRAAAgD8AAHlEAIBPRAAA/UMAAPBBAIDKQwAAIEQAQDlEAIAyRABADUQAAJZDAIBmRACA3UMAwFdEAABC"
                "QwAA2kMAgBVEAIArRACAMEQAACZEAIANRAAA0UMAAGJDAEB4RADANkQAgN1DAAAHQwCASkQAAPBDAAAUQwBATEQAgPlDAABFQwCA"
                "ZEQAgCVEAADeQwAAhUMAAAZDAABYQgAAAEIAAJRCAAA6QwAAu0MAACFEAACgQACA5EMAAEBBAIAnRACA3UMAAKdDAICuQwAA90MA"
                "wEFEAABJQwAAQUQAAPpDAADCQwAA3UMAACdEAACWQgDAJUQAAN5DAIDSQwAAFkQAwHZEAMATRACAz0MAgOhDAMA6RAAAh0MAABRC"
                "AABYQgCAo0MAgFdEAAAnRAAAO0QAAN5CAEA9RACALkQAQGpEAIDxQwCAqUMAgP9DAAAAQQCAT0QAQHdEAID1QwCAqUMAwAZEAADI"
                "QgAAyEEAAKBDAMB3RAAASEIAAPdDAICnQwAAEEQAAGJDAACQQwAAQEQAwChEAABwQQAARUQAABBBAMAoRACAR0QAAMBDAADaQwAA"
                "cEQAQHFEAIDkQwCA20MAQGVEAABhRAAAxUMAAMlDAIBoRADAdkQAwBBEAEAxRAAAwUMAQBlEAIDHQwDAOkQAgCZEAAAiQwAAbkMA"
                "AGFEAAAgQwAAkEEAAPBDAMAKRAAAeUMAQA1EAAAARAAAwEIAAKBDAABBQwCAM0QAAGJEAEA9RACAjUMAgPJDAAC6QwDAbEQAAF5D"
                "AABFQwCAW0QAgIpDAADFQwAAbkMAAEtEAAAAQwAAOkMAAHhEAIALRAAAXUQAwHREAEBURAAA+kMAwGlEAAAmQwAAQUMAAMhBAEAm"
                "RAAA+kIAgMpDAIAARAAA5UMAAHNDAABaRACAskMAgC5EAABiRABAdUQAwGlEAABBRAAA+UMAAO5CAIAfRAAAhkIAAMtDAAAmRADA"
                "U0QAQHBEAABwQQAAEEEAQG1EAMBTRACAMEQAAAVEAIClQwAA2kIAQFlEAMAbRAAAu0MAAABDAABeRACAJkQAgOhDAICRQwAAFkMA"
                "AEBCAAB3RACAdUQAABBCAAAWQwCApkMAwBNEAIBoRACAs0MAgFtEAID5QwAAYUMAAHhCAACAQQAAukIAgJVDAAAgRAAA+kIAgDxE"
                "AMAGRACA8UMAABREAABaRAAApkMAAHNEAABJRADAT0QAAHhCAID4QwAAFEMAAJBBAADiQgCA20MAAKBAAMBKRABAWUQAADlDAMA9"
                "RADAFkQAADREAADuQgAASEQAwEFEAABIQgBAHEQAAABEAIAyRAAAcEMAALpCAICLQwAASUQAQClEAEBhRACA8kMAANhDAAA7RAAA"
                "3UMAQAFEAMB0RABAUUQAAMJCAMA9RADAUEQAgKVDAAB6QwCAFUQAAMBDAMAYRAAAkEMAANFDAAAgQQAAhkIAwBREAMAWRAAAwkIA"
                "AKBCAIALRAAAB0QAAABCAAAUQgBADEQAQBlEAABHQwAAoUMAAHdEAABRQwCAdUQAAKFDAABlQwBAMUQAwEBEAIDSQwCAJUQAgPtD"
            ),
            dtype=np.float32,
        ).reshape((100, 6)),
        "large",
    ),
    numpy_helper.from_array(np.array([0], np.int64), "zero"),
    numpy_helper.from_array(np.array([2], np.int64), "two"),
    numpy_helper.from_array(np.zeros((2, 6), np.bool_), "pick"),
    numpy_helper.from_array(np.array(True, np.bool_), "yes"),
]
graph = helper.make_graph(nodes, "rich", inputs, outputs, constants)
model = helper.make_model(
    graph,
    opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("own", 1)],
    ir_version=10,
    functions=functions,
)

feeds = [
    {"x": np.ones((3, 2), np.float32)},
]

OFF = ["CastElimination", "ConstantFolding"]


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
