"""sort and topk fail for an axis of one element."""

import sys

import numpy as np
from tinygrad import Tensor


def main() -> int:
    """Return 1 if the bug shows, 0 if not."""
    wanted = np.array([[3]], np.float32)
    try:
        got = Tensor([[3.0]], device="PYTHON").topk(1)[0].numpy()
    except IndexError as error:
        print("BUG:", error)
        return 1
    if got.shape != wanted.shape or not np.array_equal(got, wanted):
        print("BUG:", got.tolist(), "instead of", wanted.tolist())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
