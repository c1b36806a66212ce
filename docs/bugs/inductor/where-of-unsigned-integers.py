"""PyTorch Inductor (CPU): a valid model raises an error

`DataTypePropagation` promotes the types of all operands of `where`, its condition included, and torch has no promotion
of bool and uint16, uint32 or uint64.

Seen with torch 2.13.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import os

os.environ["TORCHINDUCTOR_FX_GRAPH_CACHE"] = "0"  # on a hit no code would be generated

import sys

import torch


def program(condition, x, y):
    return torch.where(condition, x, y)


condition = torch.tensor([True, False])
x, y = torch.tensor([1, 2], dtype=torch.uint16), torch.tensor([3, 4], dtype=torch.uint16)
print("torch", torch.__version__)
print("level off works:", program(condition, x, y))
try:
    torch.compile(program, fullgraph=True)(condition, x, y)
except Exception as error:
    print("BUG: level full raises", type(error).__name__, str(error).splitlines()[0])
    sys.exit(1)
print("the bug does not show")
