"""The lines that scripts of programs of torch behind OpenVINO consist of."""

from miscompile.targets.about import FrontLines
from miscompile.targets.openvino.about import PROPERTIES

_PROPERTIES = repr(dict(PROPERTIES)).replace("'", '"')

_REST = f'''\
    core, wanted = ov.Core(), {_PROPERTIES}
    known = core.get_property("CPU", "SUPPORTED_PROPERTIES")
    compiled = core.compile_model(made, "CPU", {{name: value for name, value in wanted.items() if name in known}})
    request = compiled.create_infer_request()
    arrays = [to_openvino(value) for value in inputs]
    for place, (tensor, _) in enumerate(arrays[: len(made.inputs)]):
        request.set_input_tensor(place, tensor)
    request.infer()
    return [from_openvino(request.get_output_tensor(place)) for place in range(len(made.outputs))]


def to_openvino(value):
    """Return a tensor as OpenVINO's, and the array whose memory it shares."""
    value = value.contiguous()
    names = {{torch.bfloat16: "bf16", torch.float8_e4m3fn: "f8e4m3", torch.float8_e5m2: "f8e5m2"}}
    foreign = {{dtype: getattr(ov.Type, name) for dtype, name in names.items() if hasattr(ov.Type, name)}}
    if value.dtype not in foreign:
        return ov.Tensor(value.numpy()), value
    words = value.view(torch.int16 if value.element_size() == 2 else torch.uint8).numpy()
    return ov.Tensor(words, ov.Shape(list(value.shape)), foreign[value.dtype]), words


def from_openvino(tensor):
    """Return an output; types that numpy lacks are widened."""
    if tensor.element_type != ov.Type.bf16:
        return np.array(tensor.data)
    words = np.array(tensor.data).view(np.uint16).astype(np.uint32)
    return (words << 16).view(np.float32).reshape(tuple(tensor.shape))
'''

_VERSIONS = '"torch", torch.__version__, "openvino", ov.__version__'

TORCH = FrontLines(
    imports=("import openvino as ov",),
    run=f'''\
def converted(model, inputs):
    """Trace and convert the model, compile it; return its outputs."""
    made = ov.convert_model(model, example_input=tuple(value.clone() for value in inputs))  # tracing runs it
{_REST}''',
    versions=_VERSIONS,
)

EXPORTED = FrontLines(
    imports=("import openvino as ov",),
    run=f'''\
def converted(model, inputs):
    """Export and convert the model, compile it; return its outputs."""
    made = ov.convert_model(torch.export.export(model, tuple(inputs)))
{_REST}''',
    versions=_VERSIONS,
)
