"""The parts of standalone scripts for programs of torch compiled by OpenVINO, besides the runner."""

from miscompile.targets.about import FrontLines

_REST = '''\
    request = compile_read(ov.Core(), made, "full").create_infer_request()
    given = [words_of(value) for value in inputs]
    numbers = [place if place < len(made.inputs) else None for place in range(len(inputs))]
    infer(request, numbers, [words for words, _ in given], [kind for _, kind in given])
    return [widened(*from_tensor(request.get_output_tensor(place))) for place in range(len(made.outputs))]


KINDS = {torch.bfloat16: 16, torch.float8_e4m3fn: 17, torch.float8_e5m2: 19}  # numbers of onnx.TensorProto


def words_of(value):
    """Return a tensor as an array, and the number of its type where numpy lacks that; then the array holds words."""
    value = value.contiguous()
    if value.dtype not in KINDS:
        return value.numpy(), 0
    return value.view(torch.int16 if value.element_size() == 2 else torch.uint8).numpy(), KINDS[value.dtype]


def widened(name, array):
    """Return an output; brain floats are widened."""
    return (array.astype(np.uint32) << 16).view(np.float32) if name == "bf16" else array
'''

_SOURCES = ("miscompile.targets.openvino.runner",)
_VERSIONS = '"torch", torch.__version__, "openvino", ov.__version__'

TORCH = FrontLines(
    sources=_SOURCES,
    imports=("import openvino as ov",),
    run=f'''\
def converted(model, inputs):
    """Trace and convert the model, compile it; return its outputs."""
    made = ov.convert_model(model, example_input=tuple(value.clone() for value in inputs))  # tracing runs it
{_REST}''',
    versions=_VERSIONS,
)

EXPORTED = FrontLines(
    sources=_SOURCES,
    imports=("import openvino as ov",),
    run=f'''\
def converted(model, inputs):
    """Export and convert the model, compile it; return its outputs."""
    made = ov.convert_model(torch.export.export(model, tuple(inputs)))
{_REST}''',
    versions=_VERSIONS,
)
