"""Neighbours of instances of PyTorch, guided by signatures, defaults, annotations and docstrings.

Run as `python -m miscompile.harvest.libraries.hooks.neighbours_torch OUT SEED COUNT FIRST TESTS`; see
`miscompile.harvest.neighbours.run`.
"""

import sys
from functools import partial

from miscompile.harvest.libraries.hooks.constraints_torch import operations, run
from miscompile.harvest.neighbours.call import subjects_of
from miscompile.harvest.neighbours.run import write
from miscompile.instances.instance import Instance
from miscompile.targets.torch.adapter import quiet


def refusal(instance: Instance) -> str:
    """Return the kind of PyTorch's exception for an instance, empty when it returns tensors."""
    try:
        results = run(instance)
    except Exception as error:  # noqa: BLE001 - an operator raises anything when its parameters do not fit
        return f"PyTorch raises {type(error).__name__}"
    return "" if results else "PyTorch returns no tensors"


if __name__ == "__main__":
    quiet()
    write(sys.argv[1:], partial(subjects_of, operations()), refusal)
