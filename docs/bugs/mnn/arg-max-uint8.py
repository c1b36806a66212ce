"""MNN (CPU): the process dies

ArgMax takes elements of uint8 for elements of 32 bits, and reads beyond its data.

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
from onnx.reference import ReferenceEvaluator

nodes = [helper.make_node("ArgMax", ["x"], ["y"], axis=0, keepdims=0)]
inputs = [helper.make_tensor_value_info("x", TensorProto.UINT8, [2**24])]
outputs = [helper.make_tensor_value_info("y", TensorProto.INT64, [])]
graph = helper.make_graph(nodes, "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
feed = {"x": np.zeros(2**24, np.uint8)}


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
print("onnx's reference gives", ReferenceEvaluator(model).run(None, feed)[0].tolist())
print("DIES: MNN kills this process", flush=True)
print("MNN gives", run()[0].tolist())
print("the bug does not show")
