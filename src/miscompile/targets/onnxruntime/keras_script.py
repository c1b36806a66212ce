"""The parts of standalone scripts for ONNX Runtime and models exported by Keras."""

from miscompile.targets.about import FrontLines

SCRIPT = FrontLines(
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
