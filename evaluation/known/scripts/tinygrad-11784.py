"""max_unpool2d multiplies by a mask, so that infinity gives NaN."""

import sys

import numpy as np
from tinygrad import Tensor


def main() -> int:
    """Return 1 if the bug shows, 0 if not."""
    x = Tensor([[[[np.inf, 1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0]]]], device="PYTHON")
    pooled, indices = x.max_pool2d((2, 2), return_indices=True)
    got = pooled.max_unpool2d(indices, kernel_size=(2, 2)).numpy()
    wanted = np.array([[[[np.inf, 0, 0, 0], [0, 0, 0, 4]]]], np.float32)
    if got.shape != wanted.shape or not np.array_equal(got, wanted):
        print("BUG:", got.tolist(), "instead of", wanted.tolist())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
