"""Apache TVM (Relax on the CPU): an error on a valid model with Pad

The importer reads the value with which Pad fills as if it were a constant, and fails where it is an input of the
model or computed.

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
g (float[1] x, float value) => (float[3] y) <int64[2] pads = {1, 1}> { y = Pad (x, pads, value) }
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
feed = [np.array([1], np.float32), np.array(2, np.float32)]
try:
    run(feed)
except Exception as error:
    if "object has no attribute 'value'" not in str(error):
        raise
    print(f"BUG: {type(error).__name__}: {str(error).strip().splitlines()[0]}")
    sys.exit(1)
print("the bug does not show")
