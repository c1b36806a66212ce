"""PyTorch Inductor (CPU): a valid model raises an error with constant_and_index_propagation

`ShapeEnv.simplify` drops the ranges of loop variables where it asks whether a term of a maximum is negative, so that
an index with a clamp behind a padding raises an AssertionError: "vr must not be None for symbol q0".

Seen with torch 2.13.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import os

os.environ["TORCHINDUCTOR_FX_GRAPH_CACHE"] = "0"  # on a hit no pass would run

import sys

import torch

x = torch.zeros((3, 3), dtype=torch.bfloat16)


def program():
    clamped = x.to(torch.float32).reshape(9).index_select(0, torch.arange(0, 128).clamp(0, 8))
    return torch.constant_pad_nd(clamped.reshape(8, 16), (1, 1))


print("torch", torch.__version__)
print("level off works:", program().shape)
try:
    torch.compile(program, fullgraph=True, dynamic=False)()
except Exception as error:
    print("BUG: level full raises", f"{type(error).__name__}: {error}")
    sys.exit(1)
print("the bug does not show")
