"""The lines that scripts of programs of torch behind its ONNX exporters and ONNX Runtime consist of."""

from miscompile.targets.about import FrontLines

_REST = '''\
    session = ort.InferenceSession(file.getvalue(), providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    given = {name: to_runtime(inputs[int(name.removeprefix("input_"))]) for name in names}
    outputs = session.run_with_ort_values([value.name for value in session.get_outputs()], given)
    expected = flat(model(*[value.clone() for value in inputs]))
    return [from_runtime(output, value) for output, value in zip(outputs, expected)]


FOREIGN = {torch.bfloat16: 16, torch.float8_e4m3fn: 17, torch.float8_e5m2: 19}  # numbers of onnx.TensorProto


def to_runtime(value):
    """Return a tensor as a value of ONNX Runtime's."""
    value = (torch.view_as_real(value) if value.is_complex() else value).contiguous()
    if value.dtype not in FOREIGN:
        return ort.OrtValue.ortvalue_from_numpy(value.numpy())
    words = value.view(torch.int16 if value.element_size() == 2 else torch.uint8).numpy()
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(words, FOREIGN[value.dtype])


def from_runtime(value, expected):
    """Return an output as an array; types that numpy lacks are widened, pairs are complex where that is expected."""
    kind = next((kind for kind, number in FOREIGN.items() if number == value.element_type()), None)
    if kind is None:
        array = value.numpy()
        return array.view(expected.dtype)[..., 0] if expected.dtype.kind == "c" and array.dtype.kind == "f" else array
    made = torch.empty(value.shape(), dtype=kind)
    ctypes.memmove(made.data_ptr(), value.data_ptr(), made.nbytes)
    return made.float().numpy()
'''

_IMPORTS = ("import ctypes", "import io", "", "import onnxruntime as ort")
_VERSIONS = '"torch", torch.__version__, "onnxruntime", ort.__version__'

TORCH = FrontLines(
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
