"""Floor division of integers truncates."""

import sys

import numpy as np
from tinygrad import Tensor


def main() -> int:
    """Return 1 if the bug shows, 0 if not."""
    got = (Tensor([-7, 7], device="PYTHON") // Tensor([2, -2], device="PYTHON")).numpy()
    wanted = np.array([-4, -4], np.int32)
    if got.shape != wanted.shape or not np.array_equal(got, wanted):
        print("BUG:", got.tolist(), "instead of", wanted.tolist())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
