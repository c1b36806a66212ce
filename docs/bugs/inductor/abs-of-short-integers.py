"""PyTorch Inductor (CPU): wrong values, and a valid model raises an error

The C++ code generator writes `abs` of a scalar as `std::abs`, which returns int for short integers. The negative of the
absolute value of a uint8 does not wrap, and the absolute value of the int8 -128 is 128. The minimum of a scalar of int16
or int8 and its absolute value has operands of two types and cannot be compiled.

Seen with torch 2.13.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import os

os.environ["TORCHINDUCTOR_FX_GRAPH_CACHE"] = "0"  # on a hit no code would be generated

import sys

import torch


def negative(x):
    return torch.neg(torch.abs(x)).to(torch.int32)


def compared(x):
    return torch.abs(x) <= x


def minimum(x):
    return torch.minimum(x, torch.abs(x))


CASES = [
    (negative, torch.tensor([200], dtype=torch.uint8)),
    (compared, torch.tensor([-128], dtype=torch.int8)),
    (minimum, torch.full((7,), -3, dtype=torch.int16)),
]

print("torch", torch.__version__)
found = False
for program, x in CASES:
    want = program(x)
    print(program.__name__, "at level off:", want)
    try:
        got = torch.compile(program, fullgraph=True)(x)
    except Exception as error:
        lines = [line for line in str(error).splitlines() if "error:" in line]
        print("BUG: level full raises", type(error).__name__, *lines)
        found = True
        continue
    if not torch.equal(want, got):
        print("BUG:", got, "instead of", want)
        found = True
if found:
    sys.exit(1)
print("the bug does not show")
