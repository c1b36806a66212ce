"""Apache TVM (Relax on the CPU): wrong values of ScatterElements

The importer gives ScatterElements with fewer indices than data to an operator that takes the place of an update
from the shape of the data.

Issue 20182 of TVM, which is mended, was the same of Scatter, the operator's name before opset 11.

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
<ir_version: 8, opset_import: ["": 15]>
g (float[1, 2, 2] x) => (float[1, 2, 2] y)
<int64[1, 2, 1] indices = {0, 0}, float[1, 2, 1] updates = {1, 1}>
{
    y = ScatterElements (x, indices, updates)
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
found = run([np.zeros((1, 2, 2), np.float32)])[0]
expected = np.array([[[1, 0], [1, 0]]])
if found.shape != expected.shape or not np.allclose(found, expected):
    print(f"BUG: {found.tolist()} instead of {expected.tolist()}")
    sys.exit(1)
print("the bug does not show")
