"""The importer refuses ScatterND that adds."""

import sys
from typing import Any

import numpy as np
import onnx.parser
import openvino as ov

MODEL = """
<ir_version: 8, opset_import: ["" : 16]>
graph (float[3] x, int64[3, 1] i, float[3] u) => (float[3] y)
{
  y = ScatterND <reduction = "add"> (x, i, u)
}
"""


def outputs() -> list[np.ndarray[Any, Any]]:
    """Return the outputs of the compiled model on the CPU."""
    core = ov.Core()
    compiled = core.compile_model(core.read_model(onnx.parser.parse_model(MODEL).SerializeToString()), "CPU")
    feeds: list[Any] = [
        np.ones(3, np.float32),
        np.array([[0], [0], [2]]),
        np.ones(3, np.float32),
    ]
    result = compiled(feeds)
    return [result[index] for index in range(len(compiled.outputs))]


def main() -> int:
    """Return 1 if the bug shows, 0 if not."""
    wanted = [np.array([3, 1, 2], np.float32)]
    try:
        got = outputs()
    except RuntimeError as error:
        print("BUG:", str(error)[-300:].replace("\n", " "))
        return 1
    for g, w in zip(got, wanted, strict=True):
        if g.shape != w.shape or g.dtype != w.dtype or not np.allclose(g, w, rtol=1e-3, atol=1e-3, equal_nan=True):
            print("BUG:", g.dtype, g.shape, g.ravel()[:8], "instead of", w.dtype, w.shape, w.ravel()[:8])
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
