"""Apache TVM (Relax on the CPU): the process dies with ConvertLayout

ConvertLayout divides by zero where scalars are stacked, as Max of scalars does.

Seen with apache-tvm 0.27.0.post1.

This script dies when the bug shows (of signal 8). Exit code 0: it does not show.
"""

import numpy as np
import onnx
import onnx.parser
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

model = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["": 18]>
g (float x) => (float y) { y = Max (x) }
""")


def run(feed):
    """Import the model, apply the pass, compile; return the outputs."""
    module = from_onnx(model)
    module = relax.transform.ConvertLayout({"relax.nn.conv2d": ["NHWC", "OHWI"]})(module)
    executable = tvm.compile(module, tvm.target.Target({"kind": "llvm"}))
    machine = relax.VirtualMachine(executable, tvm.cpu())
    found = machine["main"](*[tvm.runtime.tensor(value) for value in feed])
    return [value.numpy() for value in ([found] if hasattr(found, "numpy") else found)]


print("tvm", tvm.__version__, "onnx", onnx.__version__, "numpy", np.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
feed = [np.array(2, np.float32)]
print("DIES: compiling and running the model kills this process", flush=True)
run(feed)
print("the bug does not show")
