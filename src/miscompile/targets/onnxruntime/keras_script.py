"""The parts of standalone scripts for ONNX Runtime and models exported by Keras."""

from miscompile.targets.about import FrontLines

SCRIPT = FrontLines(
    setup=("import os", "", 'os.environ["KERAS_BACKEND"] = "tensorflow"', ""),
    sources=("miscompile.targets.onnxruntime.keras_runner", "miscompile.targets.onnxruntime.runner"),
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
