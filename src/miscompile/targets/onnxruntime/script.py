"""The lines that a reproducer for ONNX Runtime consists of, beside what all scripts have in common."""

from miscompile.targets.about import ScriptLines
from miscompile.targets.placement import PLACEMENT
from miscompile.targets.presentations import PRESENTED, source_of

_PRELUDE = f"""\
{{% if presented %}}
import os
import tempfile
{{% if presented == "external" %}}
{{% raw %}}
{source_of("external.py")}
{{%- endraw %}}
{{% endif %}}
{{% endif %}}
"""

_PRESENTED = """\
{% set presented = presented if presented == "external" or (presented == "reload" and not placed) else "" %}
{% set nothing = "None" if presented and not alike else nothing %}
{% set source, without = ("source", "off or ()") if presented else ("model.SerializeToString()", "off") %}
"""

_RUN = (
    PLACEMENT
    + PRESENTED
    + _PRESENTED
    + '''\
def run(level, off={{ nothing }}):
    """Build at `level` without the passes `off`; return the outputs for each feed."""
{% if placed %}
    device, providers = {{ where }}, ["CPUExecutionProvider"]
    if device == "cuda":
        providers.insert(0, ("CUDAExecutionProvider", {"use_tf32": "0", "cudnn_conv_algo_search": "DEFAULT"}))
{% endif %}
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.intra_op_num_threads = {{ faulty.threads }}
    options.log_severity_level = 4
{% if "DequantizeLinear" in model %}
    # The default quantises the other operand of such products, by design; ask for float32.
    options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")
{% endif %}
{% if presented %}
    source, folder = model.SerializeToString(), tempfile.TemporaryDirectory()
    if {{ sees }}:
{% if presented == "external" %}
        # The file of the model, and beside it one with its weights.
        copy, source = onnx.load_model_from_string(source), os.path.join(folder.name, "model.onnx")
        store(copy, source, {{ given.seed }}, shapes_too=False)
{% else %}
        # Save what has been optimised, load it, and optimise no further.
        options.optimized_model_filepath = path = os.path.join(folder.name, "model.{{ given.format }}")
        options.add_session_config_entry("session.save_model_format", "{{ given.format | upper }}")
        ort.InferenceSession(source, options, providers=["CPUExecutionProvider"], disabled_optimizers=list(off or ()))
        options.optimized_model_filepath, source, off = "", path, ()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
{% endif %}
{% endif %}
{% if placed %}
    options.use_deterministic_compute = True
    session = ort.InferenceSession({{ source }}, options, providers=providers, disabled_optimizers=list(off or ()))
    assert device == "cpu" or "CUDAExecutionProvider" in session.get_providers(), "the provider did not load"
{% else %}
    session = ort.InferenceSession(
        {{ source }}, options, providers=["CPUExecutionProvider"], disabled_optimizers=list({{ without }})
    )
{% endif %}
{% if presented %}
    folder.cleanup()
{% endif %}
{% if exotic %}
    names = [output.name for output in session.get_outputs()]
    results = [session.run_with_ort_values(names, {k: value_of(k, v) for k, v in feed.items()}) for feed in feeds]
    return [[array_of(value) for value in result] for result in results]


{% if packed %}
BITS = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2}  # UINT4, INT4, FLOAT4E2M1, UINT2, INT2
KEPT = []


{% endif %}
def value_of(name, array):
    """Wrap an input, with the element type that numpy lacks if it has one."""
{% if types %}
    if name in types:
{% if packed %}
        if types[name] in BITS:  # elements lie next to each other in the first bytes
            bits = np.unpackbits(array.reshape(-1, 1), axis=1, count=BITS[types[name]], bitorder="little")
            words = np.packbits(bits, bitorder="little")
            array = np.concatenate([words, np.zeros(array.size - words.size, np.uint8)]).reshape(array.shape)
        KEPT.append(array)  # the value looks into this memory
{% endif %}
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
{% if packed %}
    if kind in BITS:
        count = int(np.prod(shape))
        words = np.frombuffer(ctypes.string_at(value.data_ptr(), -(-count * BITS[kind] // 8)), np.uint8)
        bits = np.unpackbits(words, count=count * BITS[kind], bitorder="little").reshape(count, BITS[kind])
        return np.packbits(bits, axis=1, bitorder="little").reshape(shape)
{% endif %}
    size = int(np.prod(shape)) * storage.itemsize
    bits = np.frombuffer(ctypes.string_at(value.data_ptr(), size), storage).reshape(shape)
    return (bits.astype(np.uint32) << 16).view(np.float32) if kind == TensorProto.BFLOAT16 else bits
{%- else %}
    return [session.run(None, feed) for feed in feeds]
{%- endif %}
'''
)

SCRIPT = ScriptLines(
    imports=("import onnxruntime as ort",),
    levels={
        "off": "ort.GraphOptimizationLevel.ORT_DISABLE_ALL",
        "basic": "ort.GraphOptimizationLevel.ORT_ENABLE_BASIC",
        "extended": "ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED",
        "layout": "ort.GraphOptimizationLevel.ORT_ENABLE_LAYOUT",
        "full": "ort.GraphOptimizationLevel.ORT_ENABLE_ALL",
    },
    run=_RUN,
    versions='"onnxruntime", ort.__version__',
    prelude=PLACEMENT + PRESENTED + _PRESENTED + _PRELUDE,
    exotic_imports=("import ctypes",),
)
