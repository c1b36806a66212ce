"""The parts of standalone scripts for programs of torch compiled by OpenVINO, besides the runner."""

from miscompile.targets.about import FrontLines

_REST = '''\
    request = compile_read(ov.Core(), read, "full").create_infer_request()
    given = [words_of(value) for value in inputs]
    infer(request, kept_places(len(inputs), read), [words for words, _ in given], [kind for _, kind in given])
    return [widened(*from_tensor(request.get_output_tensor(place))) for place in range(len(read.outputs))]


def widened(name, array):
    """Return an output; brain floats are widened."""
    return (array.astype(np.uint32) << 16).view(np.float32) if name == "bf16" else array
'''

_SOURCES = (
    "miscompile.targets.torch.runner",
    "miscompile.targets.openvino.torch_runner",
    "miscompile.targets.openvino.runner",
)
_VERSIONS = '"torch", torch.__version__, "openvino", ov.__version__'

TORCH = FrontLines(
    sources=_SOURCES,
    imports=("import openvino as ov",),
    run=f'''\
def converted(model, inputs):
    """Trace and convert the model, compile it; return its outputs."""
    example = tuple(value.clone() for value in inputs)  # tracing runs the model
    read = convert_traced(trace_module(model, example), model, example)
{_REST}''',
    versions=_VERSIONS,
)

EXPORTED = FrontLines(
    sources=_SOURCES,
    imports=("import openvino as ov",),
    run=f'''\
def converted(model, inputs):
    """Export and convert the model, compile it; return its outputs."""
    read = convert_exported(decode_exported(export_module(model, tuple(inputs))))
{_REST}''',
    versions=_VERSIONS,
)
