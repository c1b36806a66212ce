"""tract: the process dies

Pad with a negative number, which removes elements by ONNX, panics.

Seen with tract 0.23.9.

This script dies when the bug shows (of signal 6). Exit code 0: it does not show.
"""

import os
import tempfile

import numpy as np
import onnx
import tract
from onnx import TensorProto, helper, numpy_helper

nodes = [helper.make_node("Pad", ["x", "pads"], ["y"])]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])]
constants = [numpy_helper.from_array(np.array([-1, 0]), "pads")]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
feed = {"x": np.ones(4, np.float32)}


def run():
    """Read, optimise and run the model; return the first output."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        onnx.save(model, path)
        read = tract.onnx().load(path).into_model()
    names = [read.input_name(place) for place in range(read.input_count())]
    return read.into_runnable().run([feed[name] for name in names])[0].to_numpy()


print("tract", tract.version(), "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
print("DIES: tract kills this process", flush=True)
run()
print("the bug does not show")
