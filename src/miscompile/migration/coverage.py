"""Pairs of classes of parameters that a compiler has run, does not support, or has not been given.

The classes beside an archive of instances and the results of a migration tell it for each operator.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from miscompile.instances.classes import OPERATOR, Classes, ClassPair, pairs_of
from miscompile.migration.results import ResultRow

_RAN = frozenset({"pass", "finding", "random", "unspecified", "undefined", "unstable"})
"""Statuses of tests that the compiler ran, or that the oracle dropped for what the library says of them."""

NOT_RUN = "not run yet"
"""Why a class is missing whose instances have no results."""


@dataclass(frozen=True, slots=True)
class CompilerCoverage:
    """The pairs of one operator in instances that the library runs.

    `ran` counts those in some test that was run, `unsupported` those of which every test that was run is unsupported,
    `waiting` those in tests that were not run. `missing` lists each class that no run test has, with the reason.
    """

    operator: str
    ran: int
    unsupported: int
    waiting: int
    missing: tuple[tuple[str, str, str], ...] = ()

    @property
    def share(self) -> float:
        """Return the share of the pairs that the compiler supports, as far as known, of which some test was run."""
        return self.ran / max(self.ran + self.waiting, 1)

    def as_json(self) -> dict[str, Any]:
        """Return the row as a JSON object."""
        return {**asdict(self), "share": round(self.share, 4)}


def compiler_coverage(
    classes: Classes, rows: Iterable[ResultRow], only: Collection[str] = ()
) -> list[CompilerCoverage]:
    """Return the coverage of each operator that has classes, by the results `rows`.

    With `only`, of the operators with these names: paths, or the last parts of paths.
    """
    results = {row.digest: row for row in rows}
    operators: dict[str, list[str]] = {}
    for digest, items in classes.items():
        name = items[OPERATOR]
        if not only or name in only or name.rpartition(".")[2] in only:
            operators.setdefault(name, []).append(digest)
    return [_row(api, digests, classes, results) for api, digests in sorted(operators.items())]


def _row(api: str, digests: Iterable[str], classes: Classes, results: Mapping[str, ResultRow]) -> CompilerCoverage:
    ran: set[ClassPair] = set()
    left: set[ClassPair] = set()
    refused: dict[ClassPair, str] = {}
    for digest in digests:
        pairs, row = _pairs(classes[digest]), results.get(digest)
        if row is None:
            left |= pairs
        elif row.status in _RAN:
            ran |= pairs
        else:
            refused |= dict.fromkeys(pairs - refused.keys(), f"{row.status}: {row.message[:120]}".rstrip(": "))
    unsupported = {pair: why for pair, why in refused.items() if pair not in ran}
    left -= ran | unsupported.keys()
    missing = [(*one, why) for (one, other), why in unsupported.items() if one == other]
    missing += [(*one, NOT_RUN) for one, other in left if one == other]
    return CompilerCoverage(api, len(ran), len(unsupported), len(left), tuple(sorted(missing)))


def _pairs(found: Mapping[str, str]) -> frozenset[ClassPair]:
    return pairs_of({factor: name for factor, name in found.items() if factor != OPERATOR})
