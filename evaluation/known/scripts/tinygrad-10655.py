"""A constant of floats to the power of integers is computed as an integer."""

import sys

import numpy as np
from tinygrad import Tensor


def main() -> int:
    """Return 1 if the bug shows, 0 if not."""
    got = (0.5 ** Tensor([-1, 0, 1, 2], device="PYTHON")).numpy()
    wanted = np.array([2, 1, 0.5, 0.25], np.float32)
    if got.shape != wanted.shape or not np.array_equal(got, wanted):
        print("BUG:", got.tolist(), "instead of", wanted.tolist())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
