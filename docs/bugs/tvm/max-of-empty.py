"""Apache TVM (Relax on the CPU): an error on a valid model

The importer broadcasts the operands of Max, Min, Sum and Mean to the largest size of each axis, although 0 and 1
give 0.

A size of 0 is unknown to the importer if `shape_dict` does not have it.

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
g (float[0] x, float[1] z) => (float[0] y)
{
    y = Max (x, z)
}
""")


def run(feed):
    """Import the model, compile it with the default pipeline; return the outputs."""
    module = from_onnx(model, shape_dict={"x": [0], "z": [1]})
    executable = tvm.compile(module, tvm.target.Target({"kind": "llvm"}))
    machine = relax.VirtualMachine(executable, tvm.cpu())
    found = machine["main"](*[tvm.runtime.tensor(value) for value in feed])
    return [value.numpy() for value in ([found] if hasattr(found, "numpy") else found)]


print("tvm", tvm.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
try:
    run([np.zeros(0, np.float32), np.zeros(1, np.float32)])
except Exception as error:
    if "which are not equal" not in str(error):
        raise
    print(f"BUG: {type(error).__name__}: {str(error).strip().splitlines()[0]}")
    sys.exit(1)
print("the bug does not show")
