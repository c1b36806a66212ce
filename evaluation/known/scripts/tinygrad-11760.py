"""gather multiplies by a mask, so that infinity gives NaN."""

import sys

import numpy as np
from tinygrad import Tensor


def main() -> int:
    """Return 1 if the bug shows, 0 if not."""
    x = Tensor([np.inf, 1.0, 2.0], device="PYTHON")
    got = x.gather(0, Tensor([1, 0, 2], device="PYTHON")).numpy()
    wanted = np.array([1, np.inf, 2], np.float32)
    if got.shape != wanted.shape or not np.array_equal(got, wanted):
        print("BUG:", got.tolist(), "instead of", wanted.tolist())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
