"""ONNX Runtime (CPU): an error with ConstantFolding

ConstantFolding looks for the external data of the condition of an If in the working directory, not beside the model.

Seen with onnxruntime 1.32.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper


def body(op, name):
    """Return a branch of one node."""
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1])]
    return helper.make_graph([helper.make_node(op, ["x"], [name])], f"body_{name}", [], outputs)


condition = TensorProto(name="condition", data_type=TensorProto.BOOL, data_location=TensorProto.EXTERNAL)
condition.external_data.add(key="location", value="model.data")
nodes = [helper.make_node("If", ["condition"], ["v0"], then_branch=body("Neg", "b0"), else_branch=body("Abs", "b1"))]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])]
outputs = [helper.make_tensor_value_info("v0", TensorProto.FLOAT, [1])]
graph = helper.make_graph(nodes, "g", inputs, outputs, [condition])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def run(path, level):
    """Build the model of a file at `level`; return the first output."""
    options = ort.SessionOptions()
    options.graph_optimization_level = level
    options.log_severity_level = 4
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": np.ones(1, np.float32)})[0]


print("onnxruntime", ort.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
with tempfile.TemporaryDirectory() as folder:
    path = str(Path(folder) / "model.onnx")
    (Path(folder) / "model.data").write_bytes(b"\1")
    Path(path).write_bytes(model.SerializeToString())
    onnx.checker.check_model(path, full_check=True)
    print("onnx's checker accepts the model")
    run(path, ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
    print("level off works")
    try:
        run(path, ort.GraphOptimizationLevel.ORT_ENABLE_ALL)
    except Exception as error:
        print("BUG: level full raises", f"{type(error).__name__}: {error}")
        sys.exit(1)
print("the bug does not show")
