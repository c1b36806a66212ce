"""The yield of an arm of a campaign: the counts by which a campaign compares its techniques.

An arm is a technique of generation together with a check. The counts are sums, so that those of lanes and sessions can
be added.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any


@dataclass(frozen=True, slots=True)
class ArmYield:
    """The counts of one arm.

    `cpu_us` is the CPU time spent on its tests, in microseconds, including the search for culprits. `signatures` counts
    new signatures, `confirmed` those of them that survived triage, `pairs` the pairs of passes that fired together
    first in a test of this arm.
    """

    tests: int = 0
    cpu_us: int = 0
    violations: int = 0
    signatures: int = 0
    confirmed: int = 0
    pairs: int = 0

    def plus(self, other: "ArmYield") -> "ArmYield":
        """Return the sum of both."""
        return ArmYield(
            self.tests + other.tests,
            self.cpu_us + other.cpu_us,
            self.violations + other.violations,
            self.signatures + other.signatures,
            self.confirmed + other.confirmed,
            self.pairs + other.pairs,
        )


def shares(arms: Mapping[str, ArmYield]) -> dict[str, float]:
    """Return each arm's share of the CPU time of all, from 0 to 1."""
    whole = sum(one.cpu_us for one in arms.values())
    return {name: one.cpu_us / whole if whole else 0.0 for name, one in arms.items()}


def arms_json(arms: Mapping[str, ArmYield]) -> list[dict[str, Any]]:
    """Return the arms as JSON objects for `summary.json`, those with most CPU time first."""
    part = shares(arms)
    return [
        {
            "name": name,
            "tests": one.tests,
            "cpu_seconds": round(one.cpu_us / 1e6, 3),
            "share": round(part[name], 4),
            "violations": one.violations,
            "new_signatures": one.signatures,
            "confirmed": one.confirmed,
            "new_pass_pairs": one.pairs,
        }
        for name, one in sorted(arms.items(), key=lambda item: (-item[1].cpu_us, item[0]))
    ]


def arms_rows(arms: Mapping[str, ArmYield], most: int) -> list[tuple[str, ...]]:
    """Return rows for people: name, share of the time, tests, new signatures, confirmed ones, new pairs of passes.

    They are those of the `most` arms with most CPU time, and one row for all others together.
    """
    part = shares(arms)
    names = sorted(arms, key=lambda name: (-arms[name].cpu_us, name))
    shown = names if len(names) <= most + 1 else names[:most]
    rows = [(name, arms[name], part[name]) for name in shown]
    if len(shown) < len(names):
        others = [arms[name] for name in names[most:]]
        rest = reduce(ArmYield.plus, others)
        rows.append((f"{len(others)} others", rest, sum(part[name] for name in names[most:])))
    return [
        (name, f"{share:.0%}", f"{one.tests:,}", str(one.signatures), str(one.confirmed), str(one.pairs))
        for name, one, share in rows
    ]
