"""ONNX Runtime (CPU): the process dies

Resize with mode cubic does not check positions that are no numbers, of a region that is not finite, and reads in
front of its data.

The feed is not a sensible one, because the region ends at NaN. With the modes linear and nearest, the process does not
die. Here the page in front of the data may not be read.

Seen with onnxruntime 1.32.0.

This script dies when the bug shows (of signal 11). Exit code 0: it does not show.
"""

import ctypes
import mmap

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper


def session_of(mode):
    """Return a session of a model that resizes a region of an image of 3 x 3."""
    attributes = {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize"}
    graph = helper.make_graph(
        [helper.make_node("Resize", ["x", "roi", "", "sizes"], ["y"], **attributes)],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1, 3, 3]),
            helper.make_tensor_value_info("roi", TensorProto.FLOAT, [8]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1, 4, 5])],
        [numpy_helper.from_array(np.array([1, 1, 4, 5]), "sizes")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])


# Two pages, of which the first may not be read; the image begins where the second does.
page = mmap.PAGESIZE
memory = mmap.mmap(-1, 2 * page)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(page), 0) == 0
image = np.frombuffer((ctypes.c_float * 9).from_address(address + page), np.float32).reshape(1, 1, 3, 3)
image[:] = 1


def run(session, end):
    """Resize the region that ends at `end` of the last axis."""
    binding = session.io_binding()
    binding.bind_input("x", "cpu", 0, np.float32, image.shape, image.ctypes.data)
    binding.bind_cpu_input("roi", np.array([0, 0, 0, 0, 1, 1, 1, end], np.float32))
    binding.bind_output("y")
    session.run_with_iobinding(binding)
    return binding.copy_outputs_to_cpu()[0].ravel().tolist()[:5]


print("onnxruntime", ort.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
print("linear, a region that ends at NaN:", run(session_of("linear"), np.nan))
cubic = session_of("cubic")
print("cubic, a region that ends at 1:", run(cubic, 1))
print("DIES: ONNX Runtime kills this process at run", flush=True)
print("cubic, a region that ends at NaN:", run(cubic, np.nan))
print("the bug does not show")
