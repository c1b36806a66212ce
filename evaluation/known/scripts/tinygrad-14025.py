"""The ONNX importer splits the heads of Attention with three dimensions along the wrong axis."""

import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
from tinygrad import Device, Tensor

try:
    from tinygrad.nn.onnx import OnnxRunner
except ImportError:
    from tinygrad.frontend.onnx import OnnxRunner

MODEL = """
<ir_version: 10, opset_import: ["" : 23]>
graph (float[1, 2, 4] q, float[1, 2, 4] k, float[1, 2, 4] v) => (float[1, 2, 4] y)
{
  y = Attention <q_num_heads = 2, kv_num_heads = 2> (q, k, v)
}
"""


def attention(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return self-attention of two heads over two positions."""
    heads = x.reshape(2, 2, 2).transpose(1, 0, 2)
    scores = np.exp(heads @ heads.transpose(0, 2, 1) / np.sqrt(2))
    mixed = scores / scores.sum(axis=-1, keepdims=True) @ heads
    return np.asarray(mixed.transpose(1, 0, 2).reshape(1, 2, 4))


def main() -> int:
    """Return 1 if the bug shows, 0 if not."""
    Device.DEFAULT = "PYTHON"
    x = np.arange(8, dtype=np.float32).reshape(1, 2, 4) / 8
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(onnx.parser.parse_model(MODEL).SerializeToString())
        runner = OnnxRunner(path)
        got = next(iter(runner({name: Tensor(x) for name in "qkv"}).values())).numpy()
    wanted = attention(x)
    if not np.allclose(got, wanted, rtol=1e-3):
        print("BUG:", got.tolist(), "instead of", wanted.tolist())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
