"""The parts of standalone scripts for OpenVINO as Keras' back end, and for TensorFlow's graphs."""

from miscompile.targets.about import FrontLines

_REST = '''\
    request = compile_read(ov.Core(), read, "full").create_infer_request()
    kinds = [KINDS.get(array.dtype.name, 0) for array in inputs]
    words = [array.view(f"u{array.itemsize}") if kind else array for array, kind in zip(inputs, kinds)]
    infer(request, places, words, kinds)
    return [widened(*from_tensor(request.get_output_tensor(place))) for place in range(len(read.outputs))]


KINDS = {"bfloat16": 16, "float8_e4m3fn": 17, "float8_e5m2": 19}  # numbers of onnx.TensorProto


def widened(name, array):
    """Return an output; brain floats are widened."""
    return (array.astype(np.uint32) << 16).view(np.float32) if name == "bf16" else array
'''

_SOURCES = (
    "miscompile.targets.keras.runner",
    "miscompile.targets.openvino.keras_runner",
    "miscompile.targets.openvino.runner",
)

KERAS = FrontLines(
    setup=("import os", "", 'os.environ["KERAS_BACKEND"] = "openvino"', ""),
    imports=(
        "import openvino as ov",
        "import openvino.opset16 as opset",
        "import keras",
        "from keras.src.backend.openvino.core import OPENVINO_DTYPES",
    ),
    run='''\
def converted(model, inputs):
    """Have the back end make a graph of the model, as `predict` does; compile and run it."""
    kinds = [OPENVINO_DTYPES[keras.backend.standardize_dtype(array.dtype)] for array in inputs]
    parameters = [opset.parameter(list(array.shape), kind) for array, kind in zip(inputs, kinds)]
    read = built_by_keras(model, parameters)
    places = range(len(parameters))
'''
    + _REST,
    versions='"openvino", ov.__version__, "keras", keras.__version__',
    isolated=True,
    sources=_SOURCES,
)

TENSORFLOW = FrontLines(
    setup=("import os", "", 'os.environ["KERAS_BACKEND"] = "tensorflow"', ""),
    imports=("import keras", "import openvino as ov", "import tensorflow as tf"),
    run='''\
def converted(model, inputs):
    """Trace the model, convert its graph, compile and run it."""
    read = convert_graph(concrete_function(model, [(array.shape, array.dtype.name) for array in inputs]))
    places = named_places(len(inputs), read)
'''
    + _REST,
    versions='"openvino", ov.__version__, "tensorflow", tf.__version__, "keras", keras.__version__',
    isolated=True,
    sources=_SOURCES,
)
