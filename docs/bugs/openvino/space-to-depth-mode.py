"""OpenVINO (CPU): SpaceToDepth ignores its mode

SpaceToDepth has the attribute mode since opset 28, and CRD asks for another order of the channels: first the channel
of the input, then the place in the block. The ONNX front end ignores it and gives the order of DCR.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnx.parser
import openvino as ov

model = onnx.parser.parse_model("""
<ir_version: 10, opset_import: ["": 28]>
g (float[1, 2, 2, 2] x) => (float[1, 8, 1, 1] y)
{
    y = SpaceToDepth <blocksize = 2, mode = "CRD"> (x)
}
""")
feed = [np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)]
expected = np.arange(8, dtype=np.float32).reshape(1, 8, 1, 1)  # the four numbers of a channel stay together


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
    return [np.array(request.get_output_tensor(place).data) for place in range(len(model.graph.output))]


print("openvino", ov.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
found = run(feed)[0]
if found.shape != expected.shape or not np.allclose(found, expected, rtol=1e-3):
    print(f"BUG: {found.tolist()} instead of {expected.tolist()}")
    sys.exit(1)
print("the bug does not show")
