"""Apache TVM (Relax on the CPU): a wrong type of BatchNormalization

BatchNormalization of float16 gives float32.

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
<ir_version: 8, opset_import: ["": 17]>
g (float16[2, 1] x) => (float16[2, 1] y)
<float16[1] one = {1}, float16[1] zero = {0}>
{
    y = BatchNormalization (x, one, zero, zero, one)
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
found = run([np.ones((2, 1), np.float16)])[0]
if found.dtype != np.float16:
    print(f"BUG: {found.dtype} instead of float16")
    sys.exit(1)
print("the bug does not show")
