"""Decompositions: which operators are taken apart before the lowering to loops, by a choice that is not Inductor's.

Inductor has a table of operators and of functions that say them in terms of others. Each entry can be left out: then
the operator is lowered as it is, or its own kernel is called. Every choice computes the same up to rounding. Entries
of core ATen's table that Inductor leaves out by itself are not added: some lead in a circle with those that it has.

A script has this file's text in it: hence a plain function and few imports.
"""

import random
from typing import Any

import torch
from torch._inductor.decomposition import select_decomp_table


def chosen_decompositions(seed: int, share: float) -> dict[Any, Any]:
    """Return Inductor's table, of which a `share` is left out.

    What is not ATen's stays, and so do operators that are given no tensors, return a view of one, or write to one:
    Inductor has neither lowerings for these nor can it call their kernels.
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
