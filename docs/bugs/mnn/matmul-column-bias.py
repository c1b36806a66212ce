"""MNN (CPU): wrong values

The converter (FuseMatMulBias) fuses a MatMul and an Add of as many numbers as the product has columns, although they
are a column.

Seen with MNN 3.6.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import os
import sys
import tempfile
from importlib import metadata

import _tools
import MNN.expr as expr
import MNN.nn as nn
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

nodes = [
    helper.make_node("MatMul", ["x", "c"], ["v0"]),
    helper.make_node("Add", ["v0", "bias"], ["y"]),
]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 2])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 2])]
constants = [
    numpy_helper.from_array(np.ones((2, 2), np.float32), "c"),
    numpy_helper.from_array(np.array([[0], [1]], np.float32), "bias"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
feed = {"x": np.ones((2, 2), np.float32)}


def run():
    """Convert and run the model; return the first output. MNN stores integers and bool in 32 bits."""
    with tempfile.TemporaryDirectory() as folder:
        source, path = os.path.join(folder, "model.onnx"), os.path.join(folder, "model.mnn")
        onnx.save(model, source)
        command = ["mnnconvert", "-f", "ONNX", "--modelFile", source, "--MNNModel", path, "--bizCode", "none"]
        _tools.mnnconvert(command)  # MNN.tools.mnnconvert does this too, but installs a package and sends statistics
        module = nn.load_module_from_file(path, list(feed), ["y"], precision_mode=expr.PrecisionMode.High)
    given = [expr.const(array, list(array.shape), expr.NCHW, expr.float) for array in feed.values()]
    value = module.forward(given)[0]
    return np.array(expr.convert(value, expr.NCHW).read()).reshape(value.shape)


print("MNN", metadata.version("MNN"), "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
want = ReferenceEvaluator(model).run(None, feed)[0]
got = run()
if got.shape != want.shape or not np.allclose(got, want, rtol=1e-4, atol=1e-5):
    print("BUG: MNN gives", got.tolist(), "instead of", want.tolist())
    sys.exit(1)
print("the bug does not show")
