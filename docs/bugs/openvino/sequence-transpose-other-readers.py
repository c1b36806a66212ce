"""OpenVINO (CPU): wrong values with OptimizeSequenceTransposes

OptimizeSequenceTransposes replaces the Transpose in front of a GRU, LSTM or RNN by a Reshape, also for other nodes
that read it.

The front end puts the Transpose in front of the RNN, and SharedOpOptimization merges the two Transposes.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnx.parser
import openvino as ov

model = onnx.parser.parse_model("""
<ir_version: 9, opset_import: ["": 19]>
g (float[2, 2, 2] x) => (float[2, 1, 2, 1] hidden, float[2, 2, 2] y)
<float[1, 1, 2] w = {1, 1}, float[1, 1, 1] r = {1}>
{
    hidden = RNN <hidden_size = 1> (x, w, r)
    t = Transpose <perm = [1, 0, 2]> (x)
    y = Relu (t)
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
x = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
found = run([x])[1]
expected = x.transpose(1, 0, 2)
if found.shape != expected.shape or not np.allclose(found, expected):
    print(f"BUG: {found.tolist()} instead of {expected.tolist()}")
    sys.exit(1)
print("the bug does not show")
