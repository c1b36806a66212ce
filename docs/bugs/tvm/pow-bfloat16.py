"""Apache TVM (Relax on the CPU): error on a valid model with Pow

Pow of bfloat16 cannot be compiled: "power only applies to float". Other functions of bfloat16 are computed in float32.
LpPool contains it as well.

Seen with apache-tvm 0.27.0.post1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

model = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["": 15]>
g (bfloat16[2] x, bfloat16[2] z) => (bfloat16[2] y)
{
    y = Pow (x, z)
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
feed = [np.array([2, 3], ml_dtypes.bfloat16), np.array([2, 2], ml_dtypes.bfloat16)]
expected = [np.array([4, 9], ml_dtypes.bfloat16)]
try:
    results = run(feed)
except Exception as error:
    print("BUG:", type(error).__name__, str(error).strip().splitlines()[-1])
    sys.exit(1)
for wanted, found in zip(expected, results, strict=True):
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        print(f"BUG: {found.dtype} of shape {found.shape} instead of {wanted.dtype} of shape {wanted.shape}")
        sys.exit(1)
    if not np.allclose(found.astype(float), wanted.astype(float), rtol=1e-3, atol=1e-5):
        print(f"BUG: {found.tolist()} instead of {wanted.tolist()}")
        sys.exit(1)
print("the bug does not show")
