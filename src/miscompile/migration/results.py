"""Results of migrated tests: one line of JSON each, so that a run can be resumed and orders can be compared later."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from miscompile.base.errors import StoreError
from miscompile.findings.folder import writing

_MESSAGE = 1_000


@dataclass(frozen=True, slots=True)
class ResultRow:
    """The result of one test on one front end.

    `status`: `pass`, `unsupported`, `finding`, `memory`, `died once` (the worker died, and did not when the test was
    repeated), or the reason why the test was dropped before it was run. `bug` names the conversion function at fault
    and the kind of failure, empty without a finding; `seconds` are wall-clock seconds inside the compiler. `distance`
    is the Chebyshev distance, None without numbers.
    """

    digest: str
    api: str
    front: str
    status: str
    bug: str = ""
    converter: str = ""
    kind: str = ""
    message: str = ""
    seconds: float = 0.0
    distance: float | None = None


def line_of(row: ResultRow) -> str:
    """Return the row as one line of JSON."""
    data = asdict(row)
    data["message"] = " ".join(row.message.split())[:_MESSAGE]
    if row.distance is not None and not math.isfinite(row.distance):
        data["distance"] = str(row.distance)
    return json.dumps(data, separators=(",", ":"), allow_nan=False)


def place_of(out: Path, front: str) -> Path:
    """Return the file that holds the results of a front end."""
    return out / "results" / f"{front}.jsonl"


def read_rows(path: Path) -> list[ResultRow]:
    """Return the rows of a file, none if it is absent; a last line that a kill has cut off is left out.

    Raises StoreError when the file is damaged.
    """
    if not path.exists():
        return []
    lines = path.read_text("utf-8", "replace").splitlines()
    rows = []
    for number, line in enumerate(lines):
        try:
            rows.append(_row(json.loads(line)))
        except (ValueError, TypeError, KeyError) as error:
            if number + 1 == len(lines):
                break
            raise StoreError(f"line {number + 1} of {path} is damaged ({error}); move the file away") from None
    return rows


def _row(data: Mapping[str, Any]) -> ResultRow:
    distance = data.get("distance")
    return ResultRow(**{**data, "distance": None if distance is None else float(distance)})


@contextmanager
def appending(path: Path) -> Iterator["Appender"]:
    """Open a file of results for appending. Raises StoreError when it cannot be written."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        whole = "".join(f"{line_of(row)}\n" for row in read_rows(path))
        path.write_text(whole, "utf-8")  # without a line that was cut off
        file = path.open("a", encoding="utf-8")
    with file:
        yield Appender(file, path)


@dataclass(frozen=True, slots=True)
class Appender:
    """Adds rows to a file, each on disk before the next."""

    file: IO[str]
    path: Path

    def add(self, rows: Iterable[ResultRow]) -> None:
        """Write rows. Raises StoreError when there is no room."""
        with writing(self.path):
            self.file.write("".join(f"{line_of(row)}\n" for row in rows))
            self.file.flush()


@dataclass(frozen=True, slots=True)
class Totals:
    """A front end's row of the table: the number of tests by status, and of conversion functions at fault."""

    front: str
    tests: int
    operators: int
    statuses: Mapping[str, int]
    kinds: Mapping[str, int]
    converters: int
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """Return the totals as a JSON object."""
        return asdict(self)


def totals(front: str, rows: Iterable[ResultRow]) -> Totals:
    """Return the totals of a front end's rows."""
    kept = list(rows)
    found = [row for row in kept if row.status == "finding"]
    return Totals(
        front,
        len(kept),
        len({row.api for row in kept}),
        dict(Counter(row.status for row in kept).most_common()),
        dict(Counter(row.kind for row in found).most_common()),
        len({row.converter for row in found}),
        round(sum(row.seconds for row in kept), 3),
    )
