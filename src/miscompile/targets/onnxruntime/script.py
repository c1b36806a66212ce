"""The template of a reproducer for ONNX Runtime; its variables are described in the script writer."""

TEMPLATE = '''\
"""{{ title }}

{{ message }}
{% if versions %}

Seen with {% for name, version in versions.items() %}{{ name }} {{ version }}{{ ", " if not loop.last }}{% endfor %}.
{% endif %}

{% if kind in ("death", "hang") %}
This script dies when the bug shows{{ " (of signal %d)" % signal if signal > 0 }}. Exit code 0: it does not show.
{% else %}
Exit code 1: the bug shows. Exit code 0: it does not.
{% endif %}
"""

{% set levels = {"off": "ORT_DISABLE_ALL", "basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED",
                 "layout": "ORT_ENABLE_LAYOUT", "full": "ORT_ENABLE_ALL"} %}
{% set working = "ort.GraphOptimizationLevel." + levels[reference.level] if reference is not none else "" %}
{% set broken = "ort.GraphOptimizationLevel." + levels[faulty.level] %}
{% set declares = reference is none and kind in ("shape", "dtype") %}
{% set compares = kind in ("wrong", "missing", "shape", "dtype") and not declares %}
{% if base64 %}
import base64
{% endif %}
{% if exotic %}
import ctypes
{% endif %}
{% if kind == "memory" %}
import resource
{% endif %}
{% if kind == "hang" %}
import signal
{% endif %}
{% if kind not in ("death", "hang") %}
import sys
{% endif %}
{% if base64 or exotic or kind not in ("death",) %}

{% endif %}
import numpy as np
import onnx
import onnxruntime as ort
{% if imports %}
from onnx import {{ imports | join(", ") }}
{% endif %}

{{ model }}

{{ feeds }}
{% if types %}

# Inputs that numpy has no type for: their bits, and the type that they stand for.
types = {
{% for name, type in types.items() %}
    {{ name | literal }}: TensorProto.{{ type }},
{% endfor %}
}
{% endif %}

{% if culprits %}
# To blame: {{ culprits | join(", ") }}.{{ " All other optional passes are off." if faulty.disabled }}
{% if compares %}
CULPRITS = {{ culprits | literal }}
{% endif %}
{% endif %}
{{ off }}


def run(level, off=()):
    """Build at `level` without the passes `off`; return the outputs for each feed."""
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads = {{ faulty.threads }}
    options.log_severity_level = 4
{% if "DequantizeLinear" in model %}
    # The default quantises the other operand of such products, by design; ask for float32.
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
{% endif %}
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"], disabled_optimizers=list(off)
    )
{% if exotic %}
    names = [output.name for output in session.get_outputs()]
    results = [session.run_with_ort_values(names, {k: value_of(k, v) for k, v in feed.items()}) for feed in feeds]
    return [[array_of(value) for value in result] for result in results]


def value_of(name, array):
    """Wrap an input, with the element type that numpy lacks if it has one."""
{% if types %}
    if name in types:
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array, types[name])
{% endif %}
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
{% else %}
    return [session.run(None, feed) for feed in feeds]
{% endif %}


{% if compares %}
{% if kind == "wrong" %}
# {{ reason }}
TOLERANCE = {{ tolerance }}


{% endif %}
def problem(wants, gots):
    """Say what is wrong with output {{ output }} on feed {{ feed }}; None if nothing is."""
    want, got = wants[{{ feed }}][{{ output }}], gots[{{ feed }}][{{ output }}]
    if want is None or got is None:
        return None if want is got else "the output is missing" if got is None else "an output appears"
    want, got = np.asarray(want), np.asarray(got)
    if (want.dtype, want.shape) != (got.dtype, got.shape):
        return f"{got.dtype} of shape {got.shape} instead of {want.dtype} of shape {want.shape}"
{% if kind == "wrong" %}
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
        f"{np.count_nonzero(wrong)} of {gap.size} elements are wrong by more than {TOLERANCE:g}\\n"
        f"  largest difference {gap[worst]:.6g} at flat index {worst}: {right[worst]} instead of {left[worst]}\\n"
        f"  expected from there {left[worst : worst + 4].tolist()}\\n"
        f"  actual              {right[worst : worst + 4].tolist()}"
    )
{% else %}
    return None
{% endif %}


{% endif %}
{% if declares %}
def problem(got):
    """Say how the type of an output differs from the one that ONNX infers; None if it does not."""
    got, (dtype, shape) = np.asarray(got), DECLARED
    same = len(shape) == got.ndim and all(want in (None, have) for want, have in zip(shape, got.shape))
    return None if same and got.dtype == dtype else f"{got.dtype} of shape {got.shape} instead of {dtype} of {shape}"


# The output's type by ONNX's own inference, which the check below repeats.
DECLARED = {{ declared }}
{% endif %}
print("onnxruntime", ort.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
{% if reference is none or kind == "exception" %}
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
{% endif %}
{% if reference is not none %}
expected = run({{ working }}{{ ", " ~ (reference.disabled | sort | literal) if reference.disabled }})
{% if not compares %}
print("{{ levels[reference.level] }} works")
{% endif %}
{% endif %}
{% if declares %}
found = problem(run({{ broken }}, OFF)[{{ feed }}][{{ output }}])
if found:
    print("{{ shows }} output {{ output }} on feed {{ feed }}:", found)
    sys.exit(1)
{% elif compares %}
{% if kind == "missing" %}
try:
    found = problem(expected, run({{ broken }}, OFF))
except Exception as error:
    print("{{ shows }} {{ levels[faulty.level] }} raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
{% else %}
found = problem(expected, run({{ broken }}, OFF))
{% endif %}
{% if culprits %}
healed = not problem(expected, run({{ broken }}, [*OFF, *CULPRITS]))
print("without", *CULPRITS, "the results are", "right" if healed else "wrong as well")
{% endif %}
if found:
    print("{{ shows }} output {{ output }} on feed {{ feed }}:", found)
    sys.exit(1)
{% elif kind in ("exception", "memory") %}
{% if kind == "memory" %}
resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))  # bytes
{% endif %}
try:
    run({{ broken }}, OFF)
except Exception as error:
    print("{{ shows }} {{ levels[faulty.level] }} raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
{% else %}
{% if kind == "hang" %}
signal.alarm(30)  # seconds; the default action of this signal ends the process even inside the compiler
print("{{ dies }} {{ levels[faulty.level] }} does not end; the alarm kills this process", flush=True)
{% else %}
print("{{ dies }} {{ levels[faulty.level] }} kills this process{{ " at " + stage if stage }}", flush=True)
{% endif %}
run({{ broken }}, OFF)
{% endif %}
print("the bug does not show")
'''
