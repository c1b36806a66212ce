"""Neighbours of instances of Keras, guided by signatures, defaults, annotations and docstrings.

Run as `python -m miscompile.harvest.libraries.hooks.neighbours_keras OUT SEED COUNT FIRST TESTS`; see
`miscompile.harvest.neighbours.run`.
"""

import sys
from functools import partial

from miscompile.harvest.libraries.hooks.constraints_keras import begin, operations, run
from miscompile.harvest.neighbours.call import subjects_of
from miscompile.harvest.neighbours.run import write
from miscompile.instances.instance import Instance


def refusal(instance: Instance) -> str:
    """Return the kind of Keras's exception for an instance, empty when it returns tensors."""
    try:
        results = run(instance)
    except Exception as error:  # noqa: BLE001 - an operator raises anything when its parameters do not fit
        return f"Keras raises {type(error).__name__}"
    return "" if results else "Keras returns no tensors"


if __name__ == "__main__":
    begin()
    write(sys.argv[1:], partial(subjects_of, operations()), refusal)
