"""Selection of the operators that are decomposed before the lowering to loops, different from Inductor's selection.

Inductor has a table of operators and functions that express them by other operators. Each entry can be omitted:
Inductor then lowers the operator directly, or calls its kernel. Every selection computes the same up to rounding.
Entries of core ATen's table that Inductor itself omits are not added, because some form cycles with its own entries.

Standalone scripts contain the text of this file, so it has a plain function and few imports.
"""

import random
from typing import Any

import torch
from torch._inductor.decomposition import select_decomp_table


def chosen_decompositions(seed: int, share: float) -> dict[Any, Any]:
    """Return Inductor's table without a random `share` of its entries.

    Entries outside ATen remain, and so do operators without tensor operands, and those that return a view or write
    to an operand, because Inductor has no lowerings for these and cannot call their kernels.
    """
    numbers = random.Random(seed)
    table = dict(select_decomp_table())
    for name in sorted(table, key=str):
        if not isinstance(name, torch._ops.OpOverload) or name.namespace != "aten":
            continue
        tensors = any("Tensor" in str(argument.type) for argument in name._schema.arguments)
        fixed = not tensors or name.is_view or name._schema.is_mutable
        if numbers.random() < share and not fixed:
            del table[name]
    return table
