"""tract: a valid model raises an error

Mean whose first operand has fewer axes than another fails: it divides by a number with as many axes as the first.

Seen with tract 0.23.9.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import os
import sys
import tempfile

import numpy as np
import onnx
import tract
from onnx import TensorProto, helper

nodes = [helper.make_node("Mean", ["x", "z"], ["y"])]
inputs = [
    helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]),
    helper.make_tensor_value_info("z", TensorProto.FLOAT, [1, 2]),
]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2])]
graph = helper.make_graph(nodes, "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
feed = {"x": np.ones(2, np.float32), "z": np.ones((1, 2), np.float32)}


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
try:
    run()
except tract.TractError as error:
    print("BUG: tract raises", " ".join(str(error).partition("Stack backtrace")[0].split()))
    sys.exit(1)
print("the bug does not show")
