"""Apache TVM (Relax on the CPU): TopK reads behind its data

The importer does not compare k of TopK with the size of the axis, and reads and gives what is behind the data where
k is larger, which is not valid.

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
<ir_version: 8, opset_import: ["": 16]>
g (float[1] x) => (float[1000] values, int64[1000] indices)
<int64[1] k = {1000}>
{
    values, indices = TopK (x, k)
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
try:
    indices = run([np.ones(1, np.float32)])[1]
except Exception as error:
    print("the bug does not show:", error)
    sys.exit(0)
outside = indices[indices != 0]
if outside.size:
    print(f"BUG: {outside.size} of {indices.size} indices are not in the axis, such as {outside[:3].tolist()}")
    sys.exit(1)
print("the bug does not show")
