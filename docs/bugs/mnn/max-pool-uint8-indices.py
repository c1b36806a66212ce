"""MNN (CPU): MaxPool does not write its indices

MaxPool of uint8 does not write its second result, the indices, which hold what was in memory.

The script starts itself again with MALLOC_PERTURB_, so that the C library fills fresh memory with the byte 0xAA.

Seen with MNN 3.6.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import os
import sys
import tempfile
from importlib import metadata

if os.environ.get("MALLOC_PERTURB_") != "85":
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "MALLOC_PERTURB_": "85"})

import _tools
import MNN.expr as expr
import MNN.nn as nn
import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

nodes = [helper.make_node("MaxPool", ["x"], ["y", "indices"], kernel_shape=[2, 2], strides=[2, 2])]
inputs = [helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 1, 16, 16])]
outputs = [
    helper.make_tensor_value_info("y", TensorProto.UINT8, [1, 1, 8, 8]),
    helper.make_tensor_value_info("indices", TensorProto.INT64, [1, 1, 8, 8]),
]
graph = helper.make_graph(nodes, "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
data = (np.arange(256, dtype=np.uint8) % 128).reshape(1, 1, 16, 16)


def run():
    """Convert and run the model; return the outputs. MNN stores integers in 32 bits."""
    with tempfile.TemporaryDirectory() as folder:
        source, path = os.path.join(folder, "model.onnx"), os.path.join(folder, "model.mnn")
        onnx.save(model, source)
        command = ["mnnconvert", "-f", "ONNX", "--modelFile", source, "--MNNModel", path, "--bizCode", "none"]
        _tools.mnnconvert(command)  # MNN.tools.mnnconvert does this too, but installs a package and sends statistics
        module = nn.load_module_from_file(path, ["x"], ["y", "indices"], precision_mode=expr.PrecisionMode.High)
    given = [expr.const(data, list(data.shape), expr.NCHW, expr.uint8)]
    return [np.array(value.read()) for value in module.forward(given)]


print("MNN", metadata.version("MNN"), "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
wanted = ReferenceEvaluator(model).run(None, {"x": data})
got = run()
print("the maxima are", got[0].ravel().tolist()[:4], "as", wanted[0].ravel().tolist()[:4])
if got[1].ravel().tolist() != wanted[1].ravel().tolist():
    print("BUG: the indices are", [f"{index & 0xFFFFFFFF:#x}" for index in got[1].ravel().tolist()[:4]])
    print("instead of", wanted[1].ravel().tolist()[:4], "and so on")
    sys.exit(1)
print("the bug does not show")
