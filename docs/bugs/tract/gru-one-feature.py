"""tract: a valid model raises an error

GRU (GruSeq) with `linear_before_reset`, four steps or more and one input a step fails: "xw not contiguous".

Seen with tract 0.23.9.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import os
import sys
import tempfile

import numpy as np
import onnx
import tract
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

nodes = [helper.make_node("GRU", ["x", "w", "r"], ["y"], hidden_size=1, linear_before_reset=1)]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 1, 1])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, 1, 1, 1])]
constants = [
    numpy_helper.from_array(np.ones((1, 3, 1), np.float32), "w"),
    numpy_helper.from_array(np.ones((1, 3, 1), np.float32), "r"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
feed = {"x": np.ones((4, 1, 1), np.float32)}


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
print("onnx's reference gives", ReferenceEvaluator(model).run(None, feed)[0].tolist())
try:
    run()
except tract.TractError as error:
    print("BUG: tract raises", " ".join(str(error).partition("Stack backtrace")[0].split()))
    sys.exit(1)
print("the bug does not show")
