"""Apache TVM (Relax on the CPU): wrong values with Mod

Mod of floats, which ONNX has without `fmod` since opset 28, is NaN where the divisor is infinite, because it is
computed as x - floor(x / y) * y. ONNX gives x where both have the same sign.

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
<ir_version: 8, opset_import: ["": 28]>
g (float[3] x, float[3] z) => (float[3] y) { y = Mod (x, z) }
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
feed = [np.array([0, 1, -1], np.float32), np.array([np.inf, np.inf, -np.inf], np.float32)]
expected = [np.array([0, 1, -1], np.float32)]
for wanted, found in zip(expected, run(feed), strict=True):
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        print(f"BUG: {found.dtype} of shape {found.shape} instead of {wanted.dtype} of shape {wanted.shape}")
        sys.exit(1)
    if not np.allclose(found, wanted, rtol=1e-3, atol=1e-5):
        print(f"BUG: {found.tolist()} instead of {wanted.tolist()}")
        sys.exit(1)
print("the bug does not show")
