"""OpenVINO (CPU): Tile does not write its result

Tile whose repeats are known at run time only does not write its result where four axes grow, so that the result holds
what was in memory.

The script starts itself again with MALLOC_PERTURB_, so that the C library fills fresh memory with the byte 0xAA.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import os
import sys

if os.environ.get("MALLOC_PERTURB_") != "85":
    os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "MALLOC_PERTURB_": "85"})

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

graph = helper.make_graph(
    [helper.make_node("Tile", ["x", "repeats"], ["y"])],
    "g",
    [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 2, 2, 2]),
        helper.make_tensor_value_info("repeats", TensorProto.INT64, [4]),
    ],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["a", "b", "c", "d"])],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)

print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
data, repeats = np.arange(16, dtype=np.float32).reshape(2, 2, 2, 2), np.array([2, 2, 2, 2])
core = ov.Core()
request = core.compile_model(core.read_model(model.SerializeToString()), "CPU").create_infer_request()
request.set_tensor("x", ov.Tensor(data))
request.set_tensor("repeats", ov.Tensor(repeats))
request.infer()
got, wanted = np.array(request.get_output_tensor().data), np.tile(data, repeats)
if not np.array_equal(got, wanted):
    unset = np.count_nonzero(got.view(np.uint32) == 0xAAAAAAAA)
    print("BUG:", np.count_nonzero(got != wanted), "of", got.size, "elements are wrong;", unset, "have the bytes 0xAA")
    print("the result begins with", got.ravel()[:4].tolist(), "instead of", wanted.ravel()[:4].tolist())
    sys.exit(1)
print("the bug does not show")
