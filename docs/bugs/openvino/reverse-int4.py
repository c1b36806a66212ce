"""OpenVINO (CPU): folding a Reverse of 4 bits an element ends the process

Folding a Reverse of a constant of 4 bits an element, which the ONNX front end makes of an ArgMin with
select_last_index=1, takes each element for a byte, and reads and writes behind the constants; ONNX does not allow
the type for ArgMin.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
The process ends by a signal, behind a line with "DIES:", where the bug shows.
"""

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper

nodes = [helper.make_node("ArgMin", ["c"], ["y"], select_last_index=1)]
inputs, feeds = [], []
outputs = [helper.make_tensor_value_info("y", TensorProto.INT64, [1])]
constants = [helper.make_tensor("c", TensorProto.INT4, [4001], bytes(2001), raw=True)]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=9)


def run():
    """Compile with the default passes, with float32 as it is; return the outputs."""
    core = ov.Core()
    compiled = core.compile_model(
        core.read_model(model.SerializeToString()), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
    )
    request = compiled.create_infer_request()
    for place, value in enumerate(feeds):
        request.set_input_tensor(place, ov.Tensor(np.asarray(value, order="C")))
    request.infer()
    return [np.array(request.get_output_tensor(place).data) for place in range(len(outputs))]


print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)

print("DIES: the compiler ends this process", flush=True)
run()
print("the bug does not show")
