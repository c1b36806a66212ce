"""Apache TVM (Relax on the CPU): the import does not end with SplitToSequence

SplitToSequence into one part gives the tensor instead of a sequence; ConcatFromSequence then takes parts of this
tensor without end.

Seen with apache-tvm 0.27.0.post1.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import signal
import sys

import onnx
import onnx.parser
import tvm
from tvm.relax.frontend.onnx import from_onnx

model = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["": 18]>
g (float[1] x) => (float[1] y)
{
    s = SplitToSequence (x)
    y = ConcatFromSequence <axis = 0> (s)
}
""")


def too_long(*_):
    """End the import."""
    raise TimeoutError("The import does not end within ten seconds")


print("tvm", tvm.__version__, "onnx", onnx.__version__)
onnx.checker.check_model(model, full_check=True)
print("onnx's checker accepts the model")
signal.signal(signal.SIGALRM, too_long)
signal.alarm(10)
try:
    from_onnx(model)
except TimeoutError as error:
    print(f"BUG: {type(error).__name__}: {str(error).strip().splitlines()[0]}")
    sys.exit(1)
print("the bug does not show")
