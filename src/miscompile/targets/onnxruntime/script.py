"""The parts of standalone scripts for ONNX Runtime and its front ends, besides the runners."""

from miscompile.targets.about import FrontLines, ScriptLines
from miscompile.targets.onnxruntime.about import ABOUT
from miscompile.targets.presentations import PLACEMENT, PRESENTED

_OWN = ("miscompile.targets.guards", "miscompile.targets.ort_values", "miscompile.targets.onnxruntime.runner")
"""The modules of which every script contains functions."""

_RUN = (
    PLACEMENT
    + PRESENTED
    + '''\
{% set guards = presented == "guarded" and not placed %}
{% set given_types = "types" if types else "{}" %}
{% set used = presented if presented in ("bound", "concurrent") and not exotic else "" %}
{% set presented = presented if presented == "external" or (presented == "reload" and not placed) else "" %}
{% set nothing = "None" if (presented or used or guards) and not alike else nothing %}
{% set without = "off or ()" if nothing == "None" else "off" %}
{% set begin = "start_on(device, " if placed else "start(" %}
def run(level, off={{ nothing }}):
    """Build at `level` without the passes `off`; return the outputs for each feed."""
{% if placed %}
    device = {{ where }}
{% endif %}
    payload, options = model.SerializeToString(), session_options(level, threads={{ faulty.threads }})
{% if used == "bound" %}
    options.enable_cpu_mem_arena = options.enable_mem_pattern = {{ sees }}
{% endif %}
{% if guards %}
    names = [output.name for output in model.graph.output]
{% set before = dict(reference.transform.options) if reference is not none and reference.transform else {} %}
{% set always = before or alike or reference is none %}
{% if before and not alike %}
    fill = {{ given.fill | default(63) }} if {{ sees }} else {{ before.fill | default(63) }}  # of fresh memory
{% endif %}
{% set fill = "fill" if before and not alike else given.fill | default(63) %}
{% set ways = '"%s", %s' % (given.place | default("end"), fill) %}
{% if not always %}
    if not {{ sees }}:
        session = start(payload, options, {{ without }})
{% if exotic %}
        results = [run_words(session, names, feed, {{ given_types }}) for feed in feeds]
        return [[None if value is None else seen(*value) for value in result] for result in results]
{% else %}
        return [run_arrays(session, names, feed) for feed in feeds]
{% endif %}
{% endif %}
{% if given.taps | default("no") == "yes" %}
    payload = tapped(payload)
{% endif %}
    session, held = start_guarded(payload, options, level, {{ without }}, {{ ways }})
{% if exotic %}
    results = [run_filled(session, names, feed, {{ given_types }}, held, {{ fill }}) for feed in feeds]
    return [[None if value is None else seen(*value) for value in result] for result in results]


def seen(kind, words):
    """Return an output as numbers; 16-bit brain floats are widened, other foreign types stay bits."""
    return (words.astype(np.uint32) << 16).view(np.float32) if kind == TensorProto.BFLOAT16 else words
{%- else %}
    return [run_guarded(session, names, feed, held, {{ ways }}) for feed in feeds]
{%- endif %}
{%- else %}
{% if presented %}
    if {{ sees }}:
        with tempfile.TemporaryDirectory() as folder:
{% if presented == "external" %}
            # The file of the model, and beside it one with its weights.
            path = f"{folder}/model.onnx"
            store(onnx.load_model_from_string(payload), path, {{ given.seed }}, shapes_too=False)
            session = {{ begin }}path, options, {{ without }})
{% else %}
            session = start_reloaded(payload, options, {{ without }}, folder, "{{ given.format }}")
{% endif %}
    else:
        session = {{ begin }}payload, options, {{ without }})
{% else %}
    session = {{ begin }}payload, options, {{ without }})
{% endif %}
{% if placed %}
    assert PROVIDERS[device] in session.get_providers(), "the provider did not load"
{% endif %}
    names = [output.name for output in model.graph.output]
{% if exotic %}
    results = [run_words(session, names, feed, {{ "types" if types else "{}" }}) for feed in feeds]
    return [[None if value is None else seen(*value) for value in result] for result in results]


def seen(kind, words):
    """Return an output as numbers; 16-bit brain floats are widened, other foreign types stay bits."""
    return (words.astype(np.uint32) << 16).view(np.float32) if kind == TensorProto.BFLOAT16 else words
{%- elif used %}
    if {{ sees }}:
{% if used == "bound" %}
        return [run_bound(session, names, feed) for feed in feeds]
{% else %}
        return [run_at_once(session, names, feed, {{ given.threads | default(3) }}) for feed in feeds]
{% endif %}
    return [run_arrays(session, names, feed) for feed in feeds]
{%- else %}
    return [run_arrays(session, names, feed) for feed in feeds]
{%- endif %}
{%- endif %}
'''
)

_PLAIN = (
    PLACEMENT
    + PRESENTED
    + '''\
{% set own = presented in ("external", "reload", "bound", "concurrent", "guarded") %}
{% if not exotic and not placed and not own and faulty.threads == 1 %}
def run(level, off=()):
    """Build at `level` without the passes `off`; return the outputs for each feed."""
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    payload, providers = model.SerializeToString(), ["CPUExecutionProvider"]
    session = ort.InferenceSession(payload, options, providers, disabled_optimizers=list(off))
    return [session.run(None, feed) for feed in feeds]
{% endif %}
'''
)

_ORT_LEVELS = {
    "off": "ort.GraphOptimizationLevel.ORT_DISABLE_ALL",
    "basic": "ort.GraphOptimizationLevel.ORT_ENABLE_BASIC",
    "extended": "ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED",
    "layout": "ort.GraphOptimizationLevel.ORT_ENABLE_LAYOUT",
    "full": "ort.GraphOptimizationLevel.ORT_ENABLE_ALL",
}

SCRIPT = ScriptLines(
    plain=_PLAIN,
    plain_levels=_ORT_LEVELS,
    sources=("miscompile.targets.external", *_OWN),
    settings={
        f"session option {name}": f'options.add_session_config_entry("{name}", "1")'
        for name in ("session.qdq_matmulnbits_accuracy_level", "session.x64quantprecision")
    },
    imports=("import tempfile", "import onnxruntime as ort"),
    levels={level: f'"{level}"' for level in ABOUT.levels},
    run=_RUN,
    versions='"onnxruntime", ort.__version__',
)


_REST = """\
    session = start(payload, session_options("full"), ())
    names = [value.name for value in session.inputs_meta]
    given = {name: words_of(inputs[place_of(name)]) for name in names}
    feed = {name: to_pairs(words) for name, (words, _) in given.items()}
    types = {name: kind for name, (_, kind) in given.items() if kind}
    outputs = run_words(session, [value.name for value in session.outputs_meta], feed, types)
"""

_SEEN = '''

def seen(kind, words):
    """Return an output as an array; types that numpy lacks are widened."""
    for name, number in KINDS.items():
        if number == kind:
            return torch.from_numpy(words.copy()).view(getattr(torch, name.removeprefix("torch."))).float().numpy()
    return words
'''

_SOURCES = tuple(f"miscompile.targets.{name}" for name in ("torch.runner", "torch.onnx_runner"))
_SOURCES = (*_SOURCES, *_OWN)
_VERSIONS = '"torch", torch.__version__, "onnxruntime", ort.__version__'

TORCH = FrontLines(
    sources=_SOURCES,
    imports=("import onnxruntime as ort",),
    run=f'''\
def converted(model, inputs):
    """Export the model to ONNX, make a session of it; return its outputs."""
    graph = export_module(model, tuple(inputs))
    payload, complexes = export_program(graph, len(inputs)), complex_outputs(graph)
{_REST}\
    return restored([seen(*output) for output in outputs], complexes)
{_SEEN}''',
    versions=f'{_VERSIONS}, "onnxscript", __import__("onnxscript").__version__',
)

TORCHSCRIPT = FrontLines(
    sources=_SOURCES,
    imports=("import onnxruntime as ort",),
    run=f'''\
def converted(model, inputs):
    """Trace the model and export it to ONNX, make a session of it; return its outputs."""
    payload = export_traced(model, tuple(value.clone() for value in inputs))  # tracing runs it
{_REST}\
    return [seen(*output) for output in outputs]
{_SEEN}''',
    versions=_VERSIONS,
)


KERAS = FrontLines(
    setup=("import os", "", 'os.environ["KERAS_BACKEND"] = "tensorflow"', ""),
    sources=("miscompile.targets.onnxruntime.keras_runner", *_OWN),
    imports=("import tempfile", "", "import keras", "import onnxruntime as ort"),
    run='''\
def converted(model, inputs):
    """Export the model, make a session of it; return its outputs."""
    with tempfile.TemporaryDirectory() as folder:
        payload = export_model(model, os.path.join(folder, "model.onnx"))
    session = start(payload, session_options("full"), ())
    names = [symbol.name for symbol in model.inputs]
    feed = {value.name: inputs[names.index(value.name)] for value in session.inputs_meta}
    types = {name: KINDS[array.dtype.name] for name, array in feed.items() if array.dtype.name in KINDS}
    words = {name: feed[name].view(f"u{feed[name].itemsize}") if name in types else feed[name] for name in feed}
    outputs = run_words(session, [value.name for value in session.outputs_meta], words, types)
    return [(one.astype(np.uint32) << 16).view(np.float32) if kind == 16 else one for kind, one in outputs]


KINDS = {"bfloat16": 16, "float8_e4m3fn": 17, "float8_e5m2": 19}  # numbers of onnx.TensorProto
''',
    versions='"onnxruntime", ort.__version__, "keras", keras.__version__',
    isolated=True,
)
