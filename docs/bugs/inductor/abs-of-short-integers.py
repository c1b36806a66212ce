"""PyTorch Inductor (CPU): a valid model raises an error

The C++ code generator writes `abs` of a scalar as `std::abs`, which returns int for int16 and int8, so that the
minimum of the scalar and its absolute value has operands of two types and cannot be compiled.

Seen with torch 2.13.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import os

os.environ["TORCHINDUCTOR_FX_GRAPH_CACHE"] = "0"  # on a hit no code would be generated

import sys

import torch


def program(x):
    return torch.minimum(x, torch.abs(x))


x = torch.full((7,), -3, dtype=torch.int16)
print("torch", torch.__version__)
print("level off works:", program(x))
try:
    torch.compile(program, fullgraph=True)(x)
except Exception as error:
    lines = [line for line in str(error).splitlines() if "error:" in line]
    print("BUG: level full raises", type(error).__name__, *lines)
    sys.exit(1)
print("the bug does not show")
