"""Apache TVM (Relax on the CPU): a memory error with BF16ComputeLegalize

BF16ComputeLegalize makes float32 of the type by which the function that TopK calls is told that its tensors are
bfloat16: it reads and writes twice their memory, and the result is wrong.

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
<ir_version: 8, opset_import: ["": 24]>
g (bfloat16[3] x) => (bfloat16[2] y, int64[2] i) <int64[1] k = {2}> { y, i = TopK (x, k) }
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
feed = [np.array([1, 3, 2], ml_dtypes.bfloat16)]
expected = [np.array([3, 2], ml_dtypes.bfloat16), np.array([1, 2])]
for wanted, found in zip(expected, run(feed), strict=True):
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        print(f"BUG: {found.dtype} of shape {found.shape} instead of {wanted.dtype} of shape {wanted.shape}")
        sys.exit(1)
    if not np.allclose(found.astype(np.float32), wanted.astype(np.float32), rtol=1e-3, atol=1e-5):
        print(f"BUG: {found.tolist()} instead of {wanted.tolist()}")
        sys.exit(1)
print("the bug does not show")
