"""Certify the library: `python -m miscompile.transforms.rules [TRIALS [GROUPS AND NAMES]]`, joined with `+`."""

import sys
from collections.abc import Sequence

from miscompile.transforms.rules.certify import certify
from miscompile.transforms.rules.library import chosen


def main(arguments: Sequence[str]) -> int:
    """Certify the rules that are asked for, a line each, and return how many are not sound.

    Raises SpecError for a rule or group that there is not.
    """
    trials = int(arguments[0]) if arguments else 40
    unsound = 0
    for rule in chosen(arguments[1] if len(arguments) > 1 else ""):
        certificate = certify(rule, trials)
        unsound += not certificate.accepted
        found = f"{certificate.built} of {certificate.trials} built, worst {certificate.worst:.2g}"
        sys.stdout.write(f"{rule.name}: {certificate.reason or found}\n")
    return unsound


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
