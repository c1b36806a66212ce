"""Apache TVM (Relax on the CPU): wrong values with BatchNormalization

The importer passes the `momentum` of ONNX, the weight of the old statistics, to Relax, where it is the weight of the
new ones.

Seen with apache-tvm 0.27.0.post1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import numpy as np
import onnx
import onnx.parser
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

model = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["": 18]>
g (float[2, 1, 2] x, float[1] s, float[1] b, float[1] m, float[1] v) => (float[2, 1, 2] y, float[1] mean, float[1] variance)
{
    y, mean, variance = BatchNormalization <training_mode = 1, momentum = 0.9> (x, s, b, m, v)
}
""")


def run(feed):
    """Import the model, compile it with the default pipeline; return the outputs."""
    module = from_onnx(model)
    executable = tvm.compile(module, tvm.target.Target({"kind": "llvm"}))
    machine = relax.VirtualMachine(executable, tvm.cpu())
    found = machine["main"](*[tvm.runtime.tensor(value) for value in feed])
    return [value.numpy() for value in ([found] if hasattr(found, "numpy") else found)]


print("tvm", tvm.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
feed = [np.array([[[1, 2]], [[3, 6]]], np.float32), np.ones(1, np.float32), np.zeros(1, np.float32), np.array([10], np.float32), np.array([20], np.float32)]
expected = [np.array([[[-1.069043, -0.534522]], [[0, 1.603565]]], np.float32), np.array([9.3], np.float32), np.array([18.35], np.float32)]  # 0.9 * 10 + 0.1 * 3
for wanted, found in zip(expected, run(feed), strict=True):
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        print(f"BUG: {found.dtype} of shape {found.shape} instead of {wanted.dtype} of shape {wanted.shape}")
        sys.exit(1)
    if not np.allclose(found, wanted, rtol=1e-3, atol=1e-5):
        print(f"BUG: {found.tolist()} instead of {wanted.tolist()}")
        sys.exit(1)
print("the bug does not show")
