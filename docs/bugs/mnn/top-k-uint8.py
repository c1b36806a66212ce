"""MNN (CPU): TopK does not write its result

TopK of uint8 writes neither of its results, which hold what was in memory.

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
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

nodes = [helper.make_node("TopK", ["x", "k"], ["y", "indices"])]
inputs = [helper.make_tensor_value_info("x", TensorProto.UINT8, [64, 5])]
outputs = [
    helper.make_tensor_value_info("y", TensorProto.UINT8, [64, 2]),
    helper.make_tensor_value_info("indices", TensorProto.INT64, [64, 2]),
]
constants = [numpy_helper.from_array(np.array([2]), "k")]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
feed = {"x": np.tile(np.arange(5, dtype=np.uint8), (64, 1))}


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
wanted = [result.ravel().tolist() for result in ReferenceEvaluator(model).run(None, feed)]
got = [result.ravel().tolist() for result in run()]
if got != wanted:
    print("BUG: the largest elements are", got[0][:4], "instead of", wanted[0][:4])
    print("and their indices", [f"{index & 0xFFFFFFFF:#x}" for index in got[1][:4]], "instead of", wanted[1][:4])
    sys.exit(1)
print("the bug does not show")
