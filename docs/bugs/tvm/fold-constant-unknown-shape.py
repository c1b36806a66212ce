"""Apache TVM (Relax on the CPU): an error on a valid model with FoldConstant

FoldConstant turns an operator whose operand has an unknown shape into a loop and fails: "emit_te now only supports
Tensor that has ShapeExpr shape". FoldConstant in front of the default pipeline of the CPU shows it.

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
g (int64[1] a) => (float[n] y)
<float[1] c = {5}>
{
    t = Slice (c, a, a)
    y = Transpose (t)
}
""")


def run(feed):
    """Import the model, compile it with the default pipeline of the CPU; return the outputs."""
    module = from_onnx(model)
    module = relax.transform.FoldConstant()(module)
    target = tvm.target.Target({"kind": "llvm"})
    executable = tvm.compile(module, target, relax_pipeline=relax.get_default_pipeline(target))
    machine = relax.VirtualMachine(executable, tvm.cpu())
    found = machine["main"](*[tvm.runtime.tensor(value) for value in feed])
    return [value.numpy() for value in ([found] if hasattr(found, "numpy") else found)]


print("tvm", tvm.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
feed = [np.array([0])]
try:
    run(feed)
except Exception as error:
    if "emit_te now only supports" not in str(error):
        raise
    print(f"BUG: {type(error).__name__}: {str(error).strip().splitlines()[0]}")
    sys.exit(1)
print("the bug does not show")
