"""The parts of standalone scripts for programs of torch exported to ONNX and run by ONNX Runtime."""

from miscompile.targets.about import FrontLines

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
