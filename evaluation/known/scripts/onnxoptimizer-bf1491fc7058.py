"""fuse_consecutive_slices takes -1 and the last axis for two axes."""

import sys

import numpy as np
import onnx.parser
import onnxoptimizer
from onnx.reference import ReferenceEvaluator

MODEL = """
<ir_version: 8, opset_import: ["" : 13]>
graph (float[4, 4] x) => (float[4, 1] y)
<int64[1] one = {1}, int64[1] two = {2}, int64[1] three = {3}, int64[1] last = {-1}>
{
  t = Slice (x, one, three, one, one)
  y = Slice (t, one, two, last, one)
}
"""


def main() -> int:
    """Return 1 if the bug shows, 0 if not."""
    model = onnx.parser.parse_model(MODEL)
    feeds = {"x": np.arange(16, dtype=np.float32).reshape(4, 4)}
    try:
        optimized = onnxoptimizer.optimize(model, ["fuse_consecutive_slices"])
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
