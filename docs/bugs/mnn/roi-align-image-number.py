"""MNN (CPU): the process dies

RoiAlign does not check the numbers of images that it is given, and reads beyond its data.

The feed is not valid, because there is one image, so that its number can only be 0. ONNX Runtime raises an error.

Seen with MNN 3.6.1.

This script dies when the bug shows (of signal 11). Exit code 0: it does not show.
"""

import os
import tempfile
from importlib import metadata

import _tools
import MNN.expr as expr
import MNN.nn as nn
import numpy as np
import onnx
from onnx import TensorProto, helper

nodes = [helper.make_node("RoiAlign", ["x", "regions", "images"], ["y"], output_height=2, output_width=2)]
inputs = [
    helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 4, 4]),
    helper.make_tensor_value_info("regions", TensorProto.FLOAT, [1, 4]),
    helper.make_tensor_value_info("images", TensorProto.INT64, [1]),
]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, 2, 2])]
graph = helper.make_graph(nodes, "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def load():
    """Convert and load the model."""
    with tempfile.TemporaryDirectory() as folder:
        source, path = os.path.join(folder, "model.onnx"), os.path.join(folder, "model.mnn")
        onnx.save(model, source)
        command = ["mnnconvert", "-f", "ONNX", "--modelFile", source, "--MNNModel", path, "--bizCode", "none"]
        _tools.mnnconvert(command)  # MNN.tools.mnnconvert does this too, but installs a package and sends statistics
        names = [value.name for value in inputs]
        return nn.load_module_from_file(path, names, ["y"], precision_mode=expr.PrecisionMode.High)


def run(image):
    """Run the model with a region of the image of that number. MNN stores integers in 32 bits."""
    x = np.ones((1, 2, 4, 4), np.float32)
    regions, images = np.array([[0, 0, 3, 3]], np.float32), np.array([image], np.int32)
    given = [
        expr.const(x, [1, 2, 4, 4], expr.NCHW, expr.float),
        expr.const(regions, [1, 4], expr.NCHW, expr.float),
        expr.const(images, [1], expr.NCHW, expr.int),
    ]
    return np.array(module.forward(given)[0].read()).ravel().tolist()


print("MNN", metadata.version("MNN"), "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
module = load()
print("of image 0 comes", run(0))
print("DIES: MNN kills this process", flush=True)
print("of image 5000000 comes", run(5_000_000))
print("the bug does not show")
