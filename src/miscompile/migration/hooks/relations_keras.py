"""Related operators of Keras: run as `python -m miscompile.migration.hooks.relations_keras OUT KNOWN FIRST`.

See `miscompile.migration.relations_run`.
"""

import sys

from miscompile.instances.instance import Instance
from miscompile.migration.hooks import constraints_keras
from miscompile.migration.relations import Results
from miscompile.migration.relations_run import write


def run(instance: Instance) -> Results | None:
    """Return what Keras computes, None when it refuses."""
    try:
        return constraints_keras.run(instance)
    except Exception:  # noqa: BLE001 - a refusal, whatever its kind, is a status that is compared
        return None


if __name__ == "__main__":
    constraints_keras.begin()
    write(sys.argv[1:], constraints_keras.operations(), run)
