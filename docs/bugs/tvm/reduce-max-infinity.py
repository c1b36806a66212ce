"""Apache TVM (Relax on the CPU): wrong values with ReduceMax, ReduceMin, MaxPool

A maximum starts with the least finite number instead of minus infinity, so that ReduceMax and MaxPool of minus
infinities give -3.4e38. ReduceMin of infinities gives 3.4e38.

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
g (float[2] x) => (float[1] y) { y = ReduceMax (x) }
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
feed = [np.array([-np.inf, -np.inf], np.float32)]
expected = [np.array([-np.inf], np.float32)]
for wanted, found in zip(expected, run(feed), strict=True):
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        print(f"BUG: {found.dtype} of shape {found.shape} instead of {wanted.dtype} of shape {wanted.shape}")
        sys.exit(1)
    if not np.allclose(found, wanted, rtol=1e-3, atol=1e-5):
        print(f"BUG: {found.tolist()} instead of {wanted.tolist()}")
        sys.exit(1)
print("the bug does not show")
