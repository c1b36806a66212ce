"""Apache TVM (Relax on the CPU): an error on a valid model with FuseTransposeMatmul

FuseTransposeMatmul fails where the transposed operand has another reader, because the fused function returns a
tuple then. The pass is in no default pipeline.

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
g (float[2, 2] x, float[2, 2] z) => (float[2, 2] y, float[2, 2] t)
{
    t = Transpose (x)
    y = MatMul (z, t)
}
""")


def run(feed):
    """Import the model, apply the pass, compile; return the outputs."""
    module = from_onnx(model)
    module = relax.transform.FuseTransposeMatmul()(module)
    executable = tvm.compile(module, tvm.target.Target({"kind": "llvm"}))
    machine = relax.VirtualMachine(executable, tvm.cpu())
    found = machine["main"](*[tvm.runtime.tensor(value) for value in feed])
    return [value.numpy() for value in ([found] if hasattr(found, "numpy") else found)]


print("tvm", tvm.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
try:
    run([np.ones((2, 2), np.float32)] * 2)
except Exception as error:
    if "'TupleType' object has no attribute 'dtype'" not in str(error):
        raise
    print(f"BUG: {type(error).__name__}: {str(error).strip().splitlines()[0]}")
    sys.exit(1)
print("the bug does not show")
