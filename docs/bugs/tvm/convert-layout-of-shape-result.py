"""Apache TVM (Relax on the CPU): an error on a valid model with ConvertLayout

ConvertLayout fails where a model returns a Shape beside a tensor: "DataflowBlock Pass should not rewrite or delete any
global-scope Var". The pass is in no default pipeline.

Seen with apache-tvm 0.27.0.post1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import sys

import onnx
import onnx.parser
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

model = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["": 18]>
g (float[2] x) => (int64[1] y, float[2] z)
{
    y = Shape (x)
    z = Abs (x)
}
""")
onnx.checker.check_model(model, full_check=True)
module = from_onnx(model)
tvm.compile(module, "llvm")
print("it compiles without ConvertLayout")
try:
    relax.transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})(module)
except Exception as error:
    print("BUG:", f"{type(error).__name__}: {error}")
    sys.exit(1)
print("the bug does not show")
