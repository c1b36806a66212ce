"""The parts of standalone scripts for programs of torch exported to ONNX and run by ONNX Runtime."""

from miscompile.targets.about import FrontLines

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

_SOURCES = tuple(f"miscompile.targets.{name}" for name in ("torch.runner", "onnxruntime.torch_runner"))
_SOURCES = (*_SOURCES, "miscompile.targets.onnxruntime.runner")
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
