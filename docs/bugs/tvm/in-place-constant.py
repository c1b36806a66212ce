"""Apache TVM (Relax on the CPU): wrong values with DataflowUseInplaceCalls

DataflowUseInplaceCalls takes a constant that is bound to a variable, as FoldConstant leaves one where a Split was, for
memory that is free to overwrite: each run multiplies the constant of the compiled module anew, and the next run reads
the product. The pass is in no default pipeline.

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
g (float[2] x) => (float[2] y)
<float[4] c = {1, 2, 3, 4}>
{
    a, b = Split <axis = 0, num_outputs = 2> (c)
    y = Mul (a, x)
}
""")

print("tvm", tvm.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
module = from_onnx(model)
module = relax.transform.FoldConstant()(module)
module = relax.transform.DataflowUseInplaceCalls()(module)
executable = tvm.compile(module, tvm.target.Target({"kind": "llvm"}))
machine = relax.VirtualMachine(executable, tvm.cpu())
feed = np.array([3, 5], np.float32)
expected = np.array([1, 2], np.float32) * feed
for count in range(1, 4):
    found = machine["main"](tvm.runtime.tensor(feed)).numpy()
    print(f"run {count} gives {found.tolist()}")
    if not np.array_equal(found, expected):
        print(f"BUG: run {count} gives {found.tolist()} instead of {expected.tolist()}")
        sys.exit(1)
print("the bug does not show")
