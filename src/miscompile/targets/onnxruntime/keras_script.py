"""The lines that a script for ONNX Runtime consists of, behind Keras' export to ONNX."""

from miscompile.targets.about import FrontLines

SCRIPT = FrontLines(
    setup=("import os", "", 'os.environ["KERAS_BACKEND"] = "tensorflow"', ""),
    imports=("import tempfile", "", "import keras", "import onnxruntime as ort"),
    run='''\
def converted(model, inputs):
    """Export the model, load what comes out, run it."""
    model(inputs, training=False)
    with tempfile.TemporaryDirectory() as folder:
        model.export(os.path.join(folder, "model.onnx"), format="onnx", verbose=False)
        session = ort.InferenceSession(os.path.join(folder, "model.onnx"), providers=["CPUExecutionProvider"])
    names = [symbol.name for symbol in model.inputs]
    kept = {port.name for port in session.get_inputs()}
    return session.run(None, {name: array for name, array in zip(names, inputs) if name in kept})
''',
    versions='"onnxruntime", ort.__version__, "keras", keras.__version__',
    apart=True,
)
