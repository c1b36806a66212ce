"""OpenVINO (CPU): an STFT is refused

The ONNX front end makes a square of a frame and the window of an STFT of a real signal with onesided=0, and refuses the model.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

window = np.array([0.5, 1, 1, 0.5], np.float32)
nodes = [helper.make_node("STFT", ["x", "step", "window", "length"], ["y"], onesided=0)]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 6, 1])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2, 4, 2])]
constants = [
    numpy_helper.from_array(np.array(2), "step"),
    numpy_helper.from_array(window, "window"),
    numpy_helper.from_array(np.array(4), "length"),
]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def run(feed):
    """Compile with the default passes, with float32 as it is; return the outputs."""
    core = ov.Core()
    compiled = core.compile_model(
        core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
    )
    request = compiled.create_infer_request()
    for place, value in enumerate(feed):
        request.set_input_tensor(place, ov.Tensor(np.asarray(value, order="C")))
    request.infer()
    return [np.array(request.get_output_tensor(place).data) for place in range(len(outputs))]


print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
x = np.arange(6, dtype=np.float32)
frames = np.fft.fft(np.array([x[:4], x[2:]]) * window)
expected = np.stack([frames.real, frames.imag], axis=-1)[None]
try:
    found = run([x[None, :, None]])[0]
except Exception as error:
    print("BUG: OpenVINO raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
if found.shape != expected.shape or not np.allclose(found, expected, atol=1e-4):
    print(f"BUG: {found.tolist()} instead of {expected.tolist()}")
    sys.exit(1)
print("the bug does not show")
