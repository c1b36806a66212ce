"""The parts of standalone scripts for OpenVINO as Keras' back end, and for TensorFlow's graphs."""

from miscompile.targets.about import FrontLines

_WIDENED = '''\
def widened(value, port):
    """Return a result as an array; brain floats, which come as bits, are widened."""
    if port.element_type == ov.Type.bf16:
        return (value.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return np.array(value)
'''

KERAS = FrontLines(
    setup=("import os", "", 'os.environ["KERAS_BACKEND"] = "openvino"', ""),
    imports=(
        "import openvino as ov",
        "import openvino.opset16 as opset",
        "import keras",
        "from keras.src.backend.openvino.core import OPENVINO_DTYPES, OpenVINOKerasTensor, get_ov_output",
    ),
    run='''\
def converted(model, inputs):
    """Have the back end make a graph of the model, as `predict` does; compile and run it."""
    kinds = [OPENVINO_DTYPES[keras.backend.standardize_dtype(array.dtype)] for array in inputs]
    parameters = [opset.parameter(list(array.shape), kind) for array, kind in zip(inputs, kinds)]
    outputs = model([OpenVINOKerasTensor(parameter.output(0)) for parameter in parameters], training=False)
    results = [opset.result(get_ov_output(output)) for output in keras.tree.flatten(outputs)]
    compiled = compile_read(ov.Core(), ov.Model(results, parameters), "full")
    return [widened(value, port) for port, value in zip(compiled.outputs, compiled(inputs).to_tuple())]


'''
    + _WIDENED,
    versions='"openvino", ov.__version__, "keras", keras.__version__',
    isolated=True,
    sources=("miscompile.targets.openvino.runner",),
)

TENSORFLOW = FrontLines(
    setup=("import os", "", 'os.environ["KERAS_BACKEND"] = "tensorflow"', ""),
    imports=("import keras", "import openvino as ov", "import tensorflow as tf"),
    run='''\
def converted(model, inputs):
    """Trace the model, convert its graph, compile and run it."""
    def called(*values):
        outputs = keras.tree.flatten(model(list(values), training=False))
        return {f"y{place:03d}": output for place, output in enumerate(outputs)}

    specs = [tf.TensorSpec(array.shape, array.dtype, f"x{place}") for place, array in enumerate(inputs)]
    graph = tf.function(called, autograph=False).get_concrete_function(*specs)
    made = ov.convert_model(graph)
    compiled = compile_read(ov.Core(), made, "full")
    names = [name for port in made.inputs for name in port.get_names()]
    values = compiled({name: inputs[int(name[1:])] for name in names})
    return [widened(value, port) for port, value in zip(compiled.outputs, values.to_tuple())]


'''
    + _WIDENED,
    versions='"openvino", ov.__version__, "tensorflow", tf.__version__, "keras", keras.__version__',
    isolated=True,
    sources=("miscompile.targets.openvino.runner",),
)
