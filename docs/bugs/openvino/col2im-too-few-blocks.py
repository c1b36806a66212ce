"""OpenVINO (CPU): Col2Im reads beyond its data

Col2Im of data of fixed size does not compare their number of blocks with that of the image, whose size is known at run
time only, and reads beyond the data where they have too few.

The feed is not valid, because an image of 4 x 4 has nine blocks of 2 x 2 and the data have four. It is to raise an
error, as it does in ONNX Runtime. The sizes of the image and of a block are inputs of the model.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

graph = helper.make_graph(
    [helper.make_node("Col2Im", ["x", "image", "block"], ["y"])],
    "g",
    [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 4]),
        helper.make_tensor_value_info("image", TensorProto.INT64, [2]),
        helper.make_tensor_value_info("block", TensorProto.INT64, [2]),
    ],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, "height", "width"])],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)

print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
memory = np.full(64, 1000, np.float32)
memory[:16] = 0  # the data are 16 zeros; the numbers behind them belong to somebody else
core = ov.Core()
request = core.compile_model(core.read_model(model.SerializeToString()), "CPU").create_infer_request()
request.set_tensor("x", ov.Tensor(memory[:16].reshape(1, 4, 4), shared_memory=True))
request.set_tensor("image", ov.Tensor(np.array([4, 4])))
request.set_tensor("block", ov.Tensor(np.array([2, 2])))
try:
    request.infer()
except RuntimeError as error:
    print("the bug does not show:", str(error)[:200])
    sys.exit(0)
got = np.array(request.get_output_tensor().data)
if got.any():
    print("BUG: the data are zeros, and the result has numbers that are behind them in memory:")
    print(got.tolist())
    sys.exit(1)
print("the bug does not show")
