"""extract_constant_to_initializer fails for a Constant that is no tensor."""

import sys

import numpy as np
import onnx.parser
import onnxoptimizer
from onnx.reference import ReferenceEvaluator

MODEL = """
<ir_version: 8, opset_import: ["" : 13]>
graph (int64[2] x) => (int64[2] y)
{
  c = Constant <value_int = 3> ()
  y = Add (x, c)
}
"""


def main() -> int:
    """Return 1 if the bug shows, 0 if not."""
    model = onnx.parser.parse_model(MODEL)
    feeds = {"x": np.array([1, 2])}
    try:
        optimized = onnxoptimizer.optimize(model, ["extract_constant_to_initializer"])
    except RuntimeError as error:
        print("BUG:", str(error)[-200:])
        return 1
    wanted = ReferenceEvaluator(model).run(None, feeds)[0]
    got = ReferenceEvaluator(optimized).run(None, feeds)[0]
    if got.shape != wanted.shape or not np.array_equal(got, wanted):
        print("BUG:", got.tolist(), "instead of", wanted.tolist())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
