"""Apache TVM (Relax on the CPU): wrong values with ArgMax, ArgMin

ArgMax starts with index -1 and the least value of the type, and the lower index wins a tie: ArgMax of zeros of uint8,
or of minus infinities, is -1. ArgMin does the same with the greatest value.

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
g (uint8[2] x) => (int64[1] y) { y = ArgMax (x) }
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
feed = [np.array([0, 0], np.uint8)]
expected = [np.array([0])]
for wanted, found in zip(expected, run(feed), strict=True):
    if (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
        print(f"BUG: {found.dtype} of shape {found.shape} instead of {wanted.dtype} of shape {wanted.shape}")
        sys.exit(1)
    if not np.allclose(found, wanted, rtol=1e-3, atol=1e-5):
        print(f"BUG: {found.tolist()} instead of {wanted.tolist()}")
        sys.exit(1)
print("the bug does not show")
