"""MNN (CPU): the process dies

GridSample takes elements of uint8 for elements of 32 bits, and reads and writes beyond its data and its result.

Seen with MNN 3.6.1.

This script dies when the bug shows (of signal 6 or 11). Exit code 0: it does not show.
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
from onnx.reference import ReferenceEvaluator

nodes = [helper.make_node("GridSample", ["x", "grid"], ["y"], mode="nearest")]
inputs = [
    helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 1, 256, 256]),
    helper.make_tensor_value_info("grid", TensorProto.FLOAT, [1, 256, 256, 2]),
]
outputs = [helper.make_tensor_value_info("y", TensorProto.UINT8, [1, 1, 256, 256])]
graph = helper.make_graph(nodes, "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)
feed = {"x": np.full((1, 1, 256, 256), 7, np.uint8), "grid": np.zeros((1, 256, 256, 2), np.float32)}


def run():
    """Convert and run the model; return the outputs. MNN stores integers in 32 bits."""
    with tempfile.TemporaryDirectory() as folder:
        source, path = os.path.join(folder, "model.onnx"), os.path.join(folder, "model.mnn")
        onnx.save(model, source)
        command = ["mnnconvert", "-f", "ONNX", "--modelFile", source, "--MNNModel", path, "--bizCode", "none"]
        _tools.mnnconvert(command)  # MNN.tools.mnnconvert does this too, but installs a package and sends statistics
        names = [value.name for value in outputs]
        module = nn.load_module_from_file(path, list(feed), names, precision_mode=expr.PrecisionMode.High)
    kinds = {"uint8": expr.uint8, "float32": expr.float}
    given = [expr.const(array, list(array.shape), expr.NCHW, kinds[array.dtype.name]) for array in feed.values()]
    return [np.array(value.read()) for value in module.forward(given)]


print("MNN", metadata.version("MNN"), "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
wanted = ReferenceEvaluator(model).run(None, feed)[0]
print("DIES: MNN kills this process", flush=True)
print("MNN's result is right:", run()[0].tolist() == wanted.tolist())
print("the bug does not show")
