"""PyTorch Inductor (CPU): an output has the wrong type

The lowering of `bmm` for the CPU replaces a product with one row or one column by a multiplication and a sum, and the
sum of int8, uint8, int16 or int32 is int64.

Seen with torch 2.13.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import os

os.environ["TORCHINDUCTOR_FX_GRAPH_CACHE"] = "0"  # on a hit no code would be generated

import sys

import torch


def program(x, y):
    return torch.matmul(x, y)


x = torch.tensor([[1, 2], [3, 4]], dtype=torch.int32)
y = torch.tensor([[[5], [6]]], dtype=torch.int32)
print("torch", torch.__version__)
want, got = program(x, y), torch.compile(program, fullgraph=True)(x, y)
if got.dtype != want.dtype:
    print("BUG:", got.dtype, "instead of", want.dtype)
    sys.exit(1)
print("the bug does not show")
