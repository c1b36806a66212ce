"""PyTorch Inductor (CPU): wrong values on special operands

The vectorised code calls Sleef's `atanh`, which computes the logarithm of a quotient: it returns zero for every number
below the epsilon of its type, where the result is the number itself, and 1.0013e-5 for 1e-5 in float32.

Seen with torch 2.13.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import os

os.environ["TORCHINDUCTOR_FX_GRAPH_CACHE"] = "0"  # on a hit no code would be generated

import sys

import torch


def program(x):
    return torch.atanh(x)


x = torch.full((16,), 1e-10)
print("torch", torch.__version__)
want, got = program(x), torch.compile(program, fullgraph=True)(x)
print("in double precision:", program(x.double())[0].item())
if not torch.allclose(want, got, rtol=1e-3, atol=0.0):
    print("BUG:", got[0].item(), "instead of", want[0].item())
    sys.exit(1)
print("the bug does not show")
