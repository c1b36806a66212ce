"""Related operators of PyTorch: run as `python -m miscompile.harvest.libraries.hooks.relations_torch OUT KNOWN FIRST`.

See `miscompile.harvest.relations.run`.
"""

import sys
from dataclasses import replace

import torch

from miscompile.harvest.constraints.generate import Operation
from miscompile.harvest.libraries.hooks import constraints_torch
from miscompile.harvest.relations.run import write
from miscompile.harvest.relations.study import InstanceResults
from miscompile.instances.instance import Instance
from miscompile.targets.torch.adapter import quiet


def operations() -> list[Operation]:
    """Return functions and modules, and the methods of tensors with the names of functions."""
    known = constraints_torch.operations()
    methods = [
        replace(one, api=f"torch.Tensor.{one.api.rpartition('.')[2]}", form="method")
        for one in known
        if one.form == "function" and one.api.count(".") == 1 and hasattr(torch.Tensor, one.api.rpartition(".")[2])
    ]
    return [*known, *methods]


def run(instance: Instance) -> InstanceResults | None:
    """Return the results of PyTorch, None when it raises."""
    try:
        return constraints_torch.run(instance)
    except Exception:  # noqa: BLE001 - any exception is a status that is compared
        return None


if __name__ == "__main__":
    quiet()
    write(sys.argv[1:], operations(), run)
