"""OpenVINO (CPU): a wrong shape of STFT

Where frame_length of an STFT is omitted, the ONNX front end takes the length of the signal divided by frame_step,
where ONNX takes the length of the window, or else of the signal.

Seen with openvino 2026.4.1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnx.parser
import openvino as ov

model = onnx.parser.parse_model("""
<ir_version: 9, opset_import: ["": 20]>
g (float[1, 4, 1] x) => (float[1, 1, 3, 2] y)
<int64 step = {2}>
{
    y = STFT (x, step)
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
x = np.arange(4, dtype=np.float32)
found = run([x[None, :, None]])[0]
frame = np.fft.rfft(x)
expected = np.stack([frame.real, frame.imag], axis=-1)[None, None]
if found.shape != expected.shape or not np.allclose(found, expected, atol=1e-4):
    print(f"BUG: {found.tolist()} instead of {expected.tolist()}")
    sys.exit(1)
print("the bug does not show")
