"""Two reductions of one padded tensor, of which one is cropped, are scheduled with the wrong ranges."""

import sys

import numpy as np
from tinygrad import Tensor


def main() -> int:
    """Return 1 if the bug shows, 0 if not."""
    x = Tensor(np.arange(12, dtype=np.float32).reshape(4, 3), device="PYTHON").realize()
    one = x.pad(((1, 1), (0, 0))).sum(axis=1)
    other = x.pad(((1, 2), (0, 0))).shrink(((0, 6), (0, 3))).sum(axis=1)
    wanted = np.array([0, 6, 24, 42, 60, 0], np.float32)
    try:
        got = (one + other).numpy()
    except (RuntimeError, AssertionError) as error:
        print("BUG:", str(error)[:300])
        return 1
    if got.shape != wanted.shape or not np.array_equal(got, wanted):
        print("BUG:", got.tolist(), "instead of", wanted.tolist())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
