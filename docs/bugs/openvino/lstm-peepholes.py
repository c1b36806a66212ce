"""OpenVINO (CPU): wrong values of LSTM

The ONNX front end ignores the input P of an LSTM, the weights of its peepholes.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

random = np.random.RandomState(0)
x, w, r, p = (random.rand(*shape).astype(np.float32) for shape in [(2, 1, 3), (1, 8, 3), (1, 8, 2), (1, 6)])
nodes = [helper.make_node("LSTM", ["x", "w", "r", "", "", "", "", "p"], ["y"], hidden_size=2)]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 1, 3])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 1, 1, 2])]
constants = [numpy_helper.from_array(value, name) for name, value in (("w", w), ("r", r), ("p", p))]
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


def lstm(x, w, r, p):
    """Return the hidden states of each step, in float64, by the equations of ONNX's page of LSTM."""
    x, w, r, p = (value.astype(np.float64) for value in (x[:, 0], w[0], r[0], p[0]))
    hidden, cell, states = np.zeros(2), np.zeros(2), []
    for step in x:
        i, o, f, c = np.split(w @ step + r @ hidden, 4)
        i, f = sigmoid(i + p[:2] * cell), sigmoid(f + p[4:] * cell)
        cell = f * cell + i * np.tanh(c)
        hidden = sigmoid(o + p[2:4] * cell) * np.tanh(cell)
        states.append(hidden)
    return np.array(states)[:, None, None]


def sigmoid(value):
    return 1 / (1 + np.exp(-value))


print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
expected, found = lstm(x, w, r, p), run([x])[0]
if not np.allclose(found, expected, rtol=1e-3):
    print(f"BUG: {found.ravel().tolist()} instead of {expected.ravel().tolist()}")
    if np.allclose(found, lstm(x, w, r, p * 0), rtol=1e-3):
        print("  which is the result without peepholes")
    sys.exit(1)
print("the bug does not show")
