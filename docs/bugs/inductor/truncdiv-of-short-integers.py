"""PyTorch Inductor (CPU): a valid model raises an error

The C++ code generator writes the quotient of scalars (`truncdiv`) without a cast, so that it is int for int16 and int8:
the minimum of such a quotient and another scalar has operands of two types and cannot be compiled.

Seen with torch 2.13.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import os

os.environ["TORCHINDUCTOR_FX_GRAPH_CACHE"] = "0"  # on a hit no code would be generated

import sys

import torch


def program(x, y):
    return torch.clamp_max(torch.div(x, y, rounding_mode="trunc"), 1)


x, y = torch.full((7,), 9, dtype=torch.int16), torch.full((7,), 2, dtype=torch.int16)
print("torch", torch.__version__)
print("level off works:", program(x, y))
try:
    torch.compile(program, fullgraph=True)(x, y)
except Exception as error:
    lines = [line for line in str(error).splitlines() if "error:" in line]
    print("BUG: level full raises", type(error).__name__, *lines)
    sys.exit(1)
print("the bug does not show")
