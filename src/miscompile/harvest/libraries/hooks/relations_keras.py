"""Related operators of Keras: run as `python -m miscompile.harvest.libraries.hooks.relations_keras OUT KNOWN FIRST`.

See `miscompile.harvest.relations.run`.
"""

import sys

from miscompile.harvest.libraries.hooks import constraints_keras
from miscompile.harvest.relations.run import write
from miscompile.harvest.relations.study import InstanceResults
from miscompile.instances.instance import Instance


def run(instance: Instance) -> InstanceResults | None:
    """Return the results of Keras, None when it raises."""
    try:
        return constraints_keras.run(instance)
    except Exception:  # noqa: BLE001 - any exception is a status that is compared
        return None


if __name__ == "__main__":
    constraints_keras.begin()
    write(sys.argv[1:], constraints_keras.operations(), run)
