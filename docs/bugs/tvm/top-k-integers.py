"""Apache TVM (Relax on the CPU): an error on a valid model with TopK

TopK of int16, uint16, uint32 and uint64 is compiled and fails when it is run, because the function that it calls does
not know these types.

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
g (uint32[3] x) => (uint32[2] y, int64[2] i) <int64[1] k = {2}> { y, i = TopK (x, k) }
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
feed = [np.array([1, 3, 2], np.uint32)]
try:
    run(feed)
except Exception as error:
    if "Unsupported input dtype" not in str(error):
        raise
    print(f"BUG: {type(error).__name__}: {str(error).strip().splitlines()[0]}")
    sys.exit(1)
print("the bug does not show")
