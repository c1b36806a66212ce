"""PyTorch Inductor (CPU): wrong values on special operands

The vectorised code calls Sleef's `acosh`, which returns infinity for every float32 above the square root of the largest
one (1.8e19), where the result is 45 to 89.

Seen with torch 2.13.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import os

os.environ["TORCHINDUCTOR_FX_GRAPH_CACHE"] = "0"  # on a hit no code would be generated

import sys

import torch


def program(x):
    return torch.acosh(x)


x = torch.full((16,), 7e19)
print("torch", torch.__version__)
want, got = program(x), torch.compile(program, fullgraph=True)(x)
print("in double precision:", program(x.double())[0].item())
if not torch.allclose(want, got):
    print("BUG:", got[0].item(), "instead of", want[0].item())
    sys.exit(1)
print("the bug does not show")
