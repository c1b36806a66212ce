"""Related operators of PyTorch: run as `python -m miscompile.migration.hooks.relations_torch OUT KNOWN FIRST`.

See `miscompile.migration.relations_run`.
"""

import sys
from dataclasses import replace

import torch

from miscompile.instances.instance import Instance
from miscompile.migration.constraints import Operation
from miscompile.migration.hooks import constraints_torch
from miscompile.migration.relations import Results
from miscompile.migration.relations_run import write
from miscompile.targets.torch.adapter import quiet


def operations() -> list[Operation]:
    """Return functions and modules, and the methods of tensors that are called as functions are."""
    known = constraints_torch.operations()
    methods = [
        replace(one, api=f"torch.Tensor.{one.api.rpartition('.')[2]}", form="method")
        for one in known
        if one.form == "function" and one.api.count(".") == 1 and hasattr(torch.Tensor, one.api.rpartition(".")[2])
    ]
    return [*known, *methods]


def run(instance: Instance) -> Results | None:
    """Return what PyTorch computes, None when it refuses."""
    try:
        return constraints_torch.run(instance)
    except Exception:  # noqa: BLE001 - a refusal, whatever its kind, is a status that is compared
        return None


if __name__ == "__main__":
    quiet()
    write(sys.argv[1:], operations(), run)
