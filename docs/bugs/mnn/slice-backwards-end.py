"""MNN (CPU): the process dies

Slice with a negative step limits its end to the number of axes instead of the size of its axis, and writes behind
its result.

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
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

nodes = [helper.make_node("Slice", ["x", "start", "end", "axis", "step"], ["y"])]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [100000])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])]
constants = [
    numpy_helper.from_array(np.array([99999]), "start"),
    numpy_helper.from_array(np.array([99998]), "end"),
    numpy_helper.from_array(np.array([0]), "axis"),
    numpy_helper.from_array(np.array([-1]), "step"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
feed = {"x": np.ones(100000, np.float32)}


def run():
    """Convert and run the model; return the first output. MNN stores integers and bool in 32 bits."""
    with tempfile.TemporaryDirectory() as folder:
        source, path = os.path.join(folder, "model.onnx"), os.path.join(folder, "model.mnn")
        onnx.save(model, source)
        command = ["mnnconvert", "-f", "ONNX", "--modelFile", source, "--MNNModel", path, "--bizCode", "none"]
        _tools.mnnconvert(command)  # MNN.tools.mnnconvert does this too, but installs a package and sends statistics
        module = nn.load_module_from_file(path, list(feed), ["y"], precision_mode=expr.PrecisionMode.High)
    given = [expr.const(array, list(array.shape), expr.NCHW, expr.float) for array in feed.values()]
    return np.array(module.forward(given)[0].read())


print("MNN", metadata.version("MNN"), "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
print("onnx's reference gives", ReferenceEvaluator(model).run(None, feed)[0].tolist())
print("DIES: MNN kills this process", flush=True)
run()
print("the bug does not show")
