"""MNN (CPU): the result of Resize depends on unset memory

Resize with `tf_crop_and_resize` computes positions from numbers that nobody has set, so that its result depends on
what was in memory.

The script runs the model in several processes.

Seen with MNN 3.6.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import os
import subprocess
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

attributes = {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"}
nodes = [helper.make_node("Resize", ["x", "roi", "", "sizes"], ["y"], **attributes)]
inputs = [
    helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 3, 3]),
    helper.make_tensor_value_info("roi", TensorProto.FLOAT, [8]),
]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 4, 5])]
constants = [numpy_helper.from_array(np.array([1, 1, 4, 5]), "sizes")]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
feed = {
    "x": np.arange(1, 10, dtype=np.float32).reshape(1, 1, 3, 3),
    "roi": np.array([0, 0, 0, 0, 1, 1, 1, 1], np.float32),  # the whole image
}


def run():
    """Convert and run the model; return the numbers of the first output."""
    with tempfile.TemporaryDirectory() as folder:
        source, path = os.path.join(folder, "model.onnx"), os.path.join(folder, "model.mnn")
        onnx.save(model, source)
        command = ["mnnconvert", "-f", "ONNX", "--modelFile", source, "--MNNModel", path, "--bizCode", "none"]
        _tools.mnnconvert(command)  # MNN.tools.mnnconvert does this too, but installs a package and sends statistics
        module = nn.load_module_from_file(path, list(feed), ["y"], precision_mode=expr.PrecisionMode.High)
    given = [expr.const(array, list(array.shape), expr.NCHW, expr.float) for array in feed.values()]
    return np.array(module.forward(given)[0].read()).ravel().tolist()


if len(sys.argv) > 1:
    print("RESULT", run())
    sys.exit(0)

print("MNN", metadata.version("MNN"), "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
print("onnx's reference begins with", ReferenceEvaluator(model).run(None, feed)[0].ravel().tolist()[:5])
results = {}
for number in range(20):  # each process has its memory elsewhere, and other numbers in it
    done = subprocess.run([sys.executable, __file__, "run"], capture_output=True, text=True, check=True)
    result = next(line for line in done.stdout.splitlines() if line.startswith("RESULT"))
    results.setdefault(result, number)
    if len(results) > 1:
        break
for result, number in results.items():
    print("MNN begins in process", number, "with", result.split("[")[1].split(", ")[:5])
if len(results) > 1:
    print("BUG: the result depends on what was in memory")
    sys.exit(1)
print("the bug does not show")
