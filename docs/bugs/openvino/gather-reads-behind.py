"""OpenVINO (CPU): Gather reads beyond its data

The JIT kernel of Gather reads elements of 8 bits as words of 32 bits, also the last ones, so that it reads up to
three bytes beyond the data. Here the byte behind the data belongs to a page that nobody may read.

Seen with openvino 2026.4.1.

This script dies when the bug shows (of signal 11). Exit code 0: it does not show.
"""

import ctypes
import mmap

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

graph = helper.make_graph(
    [helper.make_node("Gather", ["x0", "c0"], ["v0"])],
    "g",
    [helper.make_tensor_value_info("x0", TensorProto.UINT8, [1])],
    [helper.make_tensor_value_info("v0", TensorProto.UINT8, [2])],
    [numpy_helper.from_array(np.array([0, 0], np.int64), "c0")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
onnx.checker.check_model(model, full_check=True)

# Two pages, of which the second may not be read; the tensor is the last byte of the first one.
page = mmap.PAGESIZE
memory = mmap.mmap(-1, 2 * page)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.mprotect(ctypes.c_void_p(address + page), ctypes.c_size_t(page), 0) == 0
data = np.frombuffer((ctypes.c_uint8 * page).from_address(address), np.uint8)[-1:]

core = ov.Core()
compiled = core.compile_model(core.read_model(model.SerializeToString()), "CPU")
request = compiled.create_infer_request()
request.set_input_tensor(ov.Tensor(data, shared_memory=True))
print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
print("DIES: level full kills this process at run", flush=True)
request.infer()
print("the bug does not show:", request.get_output_tensor().data)
