"""tract: wrong values

Celu leaves out the factor alpha of negative numbers: it gives exp(x / alpha) - 1.

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
from onnx.reference import ReferenceEvaluator

nodes = [helper.make_node("Celu", ["x"], ["y"], alpha=2.0)]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])]
graph = helper.make_graph(nodes, "g", inputs, outputs)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
feed = {"x": np.array([-1, 3], np.float32)}


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
want = ReferenceEvaluator(model).run(None, feed)[0]
got = run()
if got.shape != want.shape or not np.allclose(got, want, rtol=1e-4, atol=1e-5):
    print("BUG: tract gives", got.tolist(), "instead of", want.tolist())
    sys.exit(1)
print("the bug does not show")
