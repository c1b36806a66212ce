"""OpenVINO (CPU): an error on a valid model with AUGRUCellFusion

AUGRUCellFusion makes an AUGRUCell of matrices that are no constants, which the CPU plugin does not take.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnx.parser
import openvino as ov

model = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["": 17]>
g (float[1, 3] x, float[1, 4] h, float[7, 8] w, float[1, 1] a) => (float[1, 4] y)
<float one = {1}, float[8] b = {0, 0, 0, 0, 0, 0, 0, 0}, float[4] c = {0, 0, 0, 0},
 float[7, 4] v = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}>
{
    xh = Concat <axis = 1> (x, h)
    p = MatMul (xh, w)
    q = Add (p, b)
    s = Sigmoid (q)
    r, z = Split <axis = 1> (s)
    rh = Mul (r, h)
    xrh = Concat <axis = 1> (x, rh)
    t = MatMul (xrh, v)
    u = Add (t, c)
    n = Tanh (u)
    rest = Sub (one, a)
    az = Mul (rest, z)
    other = Sub (one, az)
    new = Mul (other, n)
    old = Mul (az, h)
    y = Add (old, new)
}
""")


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
try:
    run([np.ones(shape, np.float32) for shape in ((1, 3), (1, 4), (7, 8), (1, 1))])
except Exception as error:
    print("BUG: OpenVINO raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
print("the bug does not show")
