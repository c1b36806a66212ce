"""OpenVINO (CPU): a Slice before GatherElements is refused

EliminateSliceBeforeGatherElements removes a Slice in front of a GatherElements also along other axes than that of
the GatherElements, whose sizes of data and indices must agree in OpenVINO.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import openvino as ov
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("Slice", ["x", "starts", "ends"], ["v"]),
    helper.make_node("GatherElements", ["v", "i"], ["y"], axis=1),
]
inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 2])]
outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1])]
constants = [
    numpy_helper.from_array(np.array([0, 0], np.int64), "starts"),
    numpy_helper.from_array(np.array([1, 2], np.int64), "ends"),
    numpy_helper.from_array(np.array([[1]], np.int64), "i"),
]
feeds = [np.array([[1, 2], [3, 4]], np.float32)]
graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


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
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
try:
    run()
except Exception as error:
    print("BUG: the model is refused:", " ".join(str(error).split())[-400:])
    sys.exit(1)
print("the bug does not show")
