"""PyTorch Inductor (CPU): a valid model raises an error

Dynamo traces `torch.func.jvp` of `layer_norm` and of `batch_norm` with fake tensors into an internal assertion about
inference tensors, which asks to report a bug, where a weight has no tangent. Call by call `torch.func.jvp` gives the
derivative, and so does the compiled one where the weight has a tangent.

Seen with torch 2.13.0.

Exit code 1: the bug shows. Exit code 0: it does not.
"""

import logging
import sys

import torch

torch._logging.set_logs(all=logging.CRITICAL)

WEIGHT = torch.tensor([1.0, 2.0, 3.0])


def layer_norm(x):
    return torch.nn.functional.layer_norm(x, (3,), WEIGHT)


def batch_norm(x):
    return torch.nn.functional.batch_norm(x, torch.zeros(3), torch.ones(3), WEIGHT, WEIGHT)


def tangent(function):
    def call(x, along):
        return torch.func.jvp(function, (x,), (along,))[1]

    return call


print("torch", torch.__version__)
x, along = torch.tensor([[1.0, 2.0, 4.0], [0.5, -1.0, 3.0]]), torch.ones(2, 3)
found = False
for function in (layer_norm, batch_norm):
    call = tangent(function)
    expected = call(x, along)
    torch._dynamo.reset()
    try:
        got = torch.compile(call, fullgraph=True)(x, along)
    except Exception as error:  # noqa: BLE001 - whichever it is
        where = " in _fw_primal" if "_fw_primal" in str(error) else ""
        print(f"BUG: {function.__name__}: {type(error).__name__}{where}")
        found = True
    else:
        assert torch.allclose(expected, got, atol=1e-5)
if found:
    sys.exit(1)
print("the bug does not show")
