"""What a campaign or a migration was refused: read from its counters, or from the results of its tests."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from miscompile.base.errors import UsageError
from miscompile.engine.refusals import RefusalRow, rows_of
from miscompile.findings.store import Store
from miscompile.migration.results import ResultRow, place_of, read_rows
from miscompile.targets.front_ends import FrontEnd
from miscompile.targets.reasons import is_lawful, reason_of

_TAKEN = frozenset({"pass", "finding"})


def refusals_in(folder: Path) -> list[RefusalRow]:
    """Return the rows of the campaigns or of the migration in a folder, the most frequent first.

    Raises StoreError, UsageError when nothing was tested.
    """
    with Store.open(folder, create=False) as store:
        counters, campaign = store.counters(), store.campaign()
    if not counters.get("tests"):
        raise UsageError(f"the campaign in {folder} has tested nothing yet")
    if campaign is None or not campaign.options.get("migration"):
        return rows_of(counters)
    pairs = zip(campaign.options["libraries"], campaign.options["targets"], strict=True)
    found = [row for front in (FrontEnd(*pair) for pair in pairs) for row in refusals_of(front, _rows(folder, front))]
    return sorted(found, key=lambda row: (-row.refused, row.operator, row.reason))


def refusals_of(front: FrontEnd, rows: Iterable[ResultRow]) -> list[RefusalRow]:
    """Return how often a front end refused tests, by operator and reason, beside the tests of the operator it took."""
    refused, taken = Counter[tuple[str, str]](), Counter[str]()
    for row in rows:
        if row.status in _TAKEN:
            taken[row.api] += 1
        elif row.status == "unsupported":
            refused[row.api, refusal_of(front, row)] += 1
    return [
        RefusalRow(front.name, api, reason, count, taken[api], is_lawful(front.target, reason))
        for (api, reason), count in refused.items()
    ]


def refusal_of(front: FrontEnd, row: ResultRow) -> str:
    """Return the reason for which a front end refused the test of a row; its message begins with the stage."""
    message = row.message.partition(": ")[2]
    kind, _, rest = message.partition(": ")
    told = (kind, rest) if rest and kind.isidentifier() else ("", message)
    return reason_of(front.target, *told)


def _rows(folder: Path, front: FrontEnd) -> list[ResultRow]:
    return read_rows(place_of(folder, front.name))
