"""The parts of standalone scripts for ONNX Runtime and its front ends, besides the runner."""

from miscompile.targets.about import FrontLines, ScriptLines
from miscompile.targets.onnxruntime.about import ABOUT
from miscompile.targets.presentations import PLACEMENT, PRESENTED

_RUN = (
    PLACEMENT
    + PRESENTED
    + '''\
{% set presented = presented if presented == "external" or (presented == "reload" and not placed) else "" %}
{% set nothing = "None" if presented and not alike else nothing %}
{% set without = "off or ()" if nothing == "None" else "off" %}
{% set begin = "start_on(device, " if placed else "start(" %}
def run(level, off={{ nothing }}):
    """Build at `level` without the passes `off`; return the outputs for each feed."""
{% if placed %}
    device = {{ where }}
{% endif %}
    payload, options = model.SerializeToString(), session_options(level, threads={{ faulty.threads }})
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
{%- else %}
    return [run_arrays(session, names, feed) for feed in feeds]
{%- endif %}
'''
)

SCRIPT = ScriptLines(
    sources=("miscompile.targets.external", "miscompile.targets.onnxruntime.runner"),
    imports=("import tempfile",),
    levels={level: f'"{level}"' for level in ABOUT.levels},
    run=_RUN,
    versions='"onnxruntime", ort.__version__',
)


_REST = '''\
    session = start(file.getvalue(), session_options("full"), ())
    names = [value.name for value in session.inputs_meta]
    given = {name: words_of(inputs[int(name.removeprefix("input_"))]) for name in names}
    feed = {name: words for name, (words, _) in given.items()}
    types = {name: kind for name, (_, kind) in given.items() if kind}
    outputs = run_words(session, [value.name for value in session.outputs_meta], feed, types)
    expected = flat(model(*[value.clone() for value in inputs]))
    return [seen(*output, value) for output, value in zip(outputs, expected)]


KINDS = {torch.bfloat16: 16, torch.float8_e4m3fn: 17, torch.float8_e5m2: 19}  # numbers of onnx.TensorProto


def words_of(value):
    """Return a tensor as an array, and the number of its type where numpy lacks that; then the array holds words."""
    value = (torch.view_as_real(value) if value.is_complex() else value).contiguous()
    if value.dtype not in KINDS:
        return value.numpy(), 0
    return value.view(torch.int16 if value.element_size() == 2 else torch.uint8).numpy(), KINDS[value.dtype]


def seen(kind, words, expected):
    """Return an output as an array; types that numpy lacks are widened, pairs are complex where that is expected."""
    for dtype, number in KINDS.items():
        if number == kind:
            return torch.from_numpy(words.copy()).view(dtype).float().numpy()
    return words.view(expected.dtype)[..., 0] if expected.dtype.kind == "c" and words.dtype.kind == "f" else words
'''

_IMPORTS = ("import io", "import onnxruntime as ort")
_SOURCES = ("miscompile.targets.onnxruntime.runner",)
_VERSIONS = '"torch", torch.__version__, "onnxruntime", ort.__version__'

TORCH = FrontLines(
    sources=_SOURCES,
    imports=_IMPORTS,
    run=f'''\
def converted(model, inputs):
    """Export the model to ONNX, make a session of it; return its outputs."""
    file = io.BytesIO()
    names = [f"input_{{place}}" for place in range(len(inputs))]
    program = torch.export.export(model, tuple(inputs))
    try:
        torch.onnx.export(program, f=file, input_names=names, dynamo=True, verbose=False)
    except torch.onnx.errors.OnnxExporterError as error:
        while error.__cause__ is not None:
            error = error.__cause__  # what was raised first
        raise error
{_REST}''',
    versions=f'{_VERSIONS}, "onnxscript", __import__("onnxscript").__version__',
)

TORCHSCRIPT = FrontLines(
    sources=_SOURCES,
    imports=_IMPORTS,
    run=f'''\
def converted(model, inputs):
    """Trace the model and export it to ONNX, make a session of it; return its outputs."""
    file = io.BytesIO()
    names = [f"input_{{place}}" for place in range(len(inputs))]
    example = tuple(value.clone() for value in inputs)  # tracing runs it
    torch.onnx.export(model, example, file, input_names=names, dynamo=False, verbose=False)
{_REST}''',
    versions=_VERSIONS,
)


KERAS = FrontLines(
    setup=("import os", "", 'os.environ["KERAS_BACKEND"] = "tensorflow"', ""),
    imports=("import tempfile", "", "import keras", "import onnxruntime as ort"),
    run='''\
def converted(model, inputs):
    """Export the model, load what comes out, run it."""
    model(inputs, training=False)
    specs = [keras.InputSpec(shape=one.shape, dtype=one.dtype, name=one.name) for one in model.inputs]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        model.export(path, format="onnx", verbose=False, input_signature=[specs])
        session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [symbol.name for symbol in model.inputs]
    kept = {port.name for port in session.get_inputs()}
    return session.run(None, {name: array for name, array in zip(names, inputs) if name in kept})
''',
    versions='"onnxruntime", ort.__version__, "keras", keras.__version__',
    isolated=True,
)
