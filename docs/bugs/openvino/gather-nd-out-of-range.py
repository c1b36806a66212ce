"""OpenVINO (CPU): GatherND reads beyond its data

The CPU plugin does not check the indices of GatherND, and reads behind and in front of the data.

The feed is not valid, because ONNX allows indices from -4 to 3 where the axis has four elements. It is to raise an
error.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

graph = helper.make_graph(
    [helper.make_node("GatherND", ["x", "indices"], ["y"])],
    "g",
    [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [4]),
        helper.make_tensor_value_info("indices", TensorProto.INT64, [2, 1]),
    ],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)

print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
memory = np.full(64, 1000, np.float32)
data = memory[32:36]  # the numbers around the data belong to somebody else
data[:] = 0
core = ov.Core()
request = core.compile_model(core.read_model(model.SerializeToString()), "CPU").create_infer_request()
request.set_tensor("x", ov.Tensor(data, shared_memory=True))
request.set_tensor("indices", ov.Tensor(np.array([[9], [-9]])))
try:
    request.infer()
except RuntimeError as error:
    print("the bug does not show:", str(error)[:200])
    sys.exit(0)
got = np.array(request.get_output_tensor().data)
if got.any():
    print("BUG: the data are zeros, and the result has what is behind and in front of them in memory:", got.tolist())
    sys.exit(1)
print("the bug does not show")
