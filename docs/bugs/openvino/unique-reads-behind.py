"""OpenVINO (CPU): Unique reads beyond its data

Unique along an axis that is not the first compares the slices at wrong places, so that it misses equal ones and reads
beyond the data.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

graph = helper.make_graph(
    [helper.make_node("Unique", ["x"], ["y"], axis=1)],
    "g",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, "columns"])],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
core = ov.Core()
request = core.compile_model(core.read_model(model.SerializeToString()), "CPU").create_infer_request()


def run(behind):
    """Return the different columns of a matrix, behind which is some number in memory."""
    memory = np.full(64, behind, np.float32)
    data = memory[:6].reshape(2, 3)
    data[:] = [[0, 0, 0], [1, 0, 0]]
    request.set_tensor("x", ov.Tensor(data, shared_memory=True))
    request.infer()
    return np.array(request.get_output_tensor().data).tolist(), data


print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
results = [run(behind)[0] for behind in (0, 9)]
print("onnx's reference gives", ReferenceEvaluator(model).run(None, {"x": run(0)[1]})[0].tolist())
print("with zeros behind the data", results[0])
print("with nines behind the data", results[1])
if results[0] != results[1]:
    print("BUG: the result depends on what is behind the data in memory")
    sys.exit(1)
print("the bug does not show")
