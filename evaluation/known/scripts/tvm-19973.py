"""The ONNX importer gives the indices of TopK the type int32."""

import sys
from typing import Any

import numpy as np
import onnx.parser
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
graph (float[4] x) => (float[2] v, int64[2] i)
<int64[1] k = {2}>
{
  v, i = TopK (x, k)
}
"""


def outputs() -> list[np.ndarray[Any, Any]]:
    """Return the outputs of the compiled model on the CPU."""
    model = onnx.parser.parse_model(MODEL)
    module = from_onnx(model)
    module = relax.transform.DecomposeOpsForInference()(module)
    executable = tvm.compile(module, target="llvm")
    machine = relax.VirtualMachine(executable, tvm.cpu())
    feeds: list[Any] = [
        np.array([1, 4, 2, 3], np.float32),
    ]
    result = machine["main"](*(tvm.runtime.tensor(feed) for feed in feeds))
    return [tensor.numpy() for tensor in ([result] if hasattr(result, "numpy") else result)]


def main() -> int:
    """Return 1 if the bug shows, 0 if not."""
    wanted: list[np.ndarray[Any, Any]] = [np.array([4, 3], np.float32), np.array([1, 3], np.int64)]
    try:
        got = outputs()
    except (tvm.error.InternalError, TypeError, ValueError, AttributeError) as error:
        print("BUG:", type(error).__name__, str(error)[-300:].replace("\n", " "))
        return 1
    for g, w in zip(got, wanted, strict=True):
        if g.shape != w.shape or g.dtype != w.dtype or not np.allclose(g, w, rtol=1e-4, atol=1e-4, equal_nan=True):
            print("BUG:", g.dtype, g.shape, g.ravel()[:8], "instead of", w.dtype, w.shape, w.ravel()[:8])
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
