"""The pair record: a model, and what a test suite says of the pass that looks for something in it.

A test of an optimiser is a program on which a pass is expected to do something (OATest, section 3.1): the pair of both
is what patterns are cut from. Records are kept as lines of JSON beside the models, each written as soon as it is
known, so that a test that crashes its process takes nothing along that was seen before.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from miscompile.base.errors import StoreError

LINES = "pairs.jsonl"
"""Name of the file of records in the folder that a hook writes."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A model file, and the pass that a source names for it.

    `named` is empty where the source does not say which pass it tests; `changed` is None where it does not say
    whether the pass changed the model. `test` names the test, or whatever else the model comes from.
    """

    model: Path
    named: str
    changed: bool | None
    test: str


@dataclass(slots=True)
class SuiteRecord:
    """What one test file (or folder of models) gave.

    `tests` counts tests by outcome (`passed`, `failed`, `skipped`), `left` what could not be taken, by reason. `ended`
    says that the child came to its end; its exit code is `code`.
    """

    pairs: list[Pair] = field(default_factory=list)
    tests: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    ended: bool = False
    code: int | None = None


@dataclass(slots=True)
class Gathered:
    """What a source gave in all.

    `sources` counts its files by what became of them: `ran` to their end, had no test that could be run (`empty`),
    `died` on the way, ran out of `time`, were `stopped`. What they gave before they died is here too. `notes` says
    for each that did not run what happened. `stopped` says that the user interrupted it: files are missing.
    """

    pairs: list[Pair] = field(default_factory=list)
    sources: Counter[str] = field(default_factory=Counter)
    tests: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    stopped: bool = False

    def add(self, record: SuiteRecord) -> None:
        """Add what one file gave."""
        self.pairs += record.pairs
        self.tests += record.tests
        self.left += record.left


def read_record(folder: Path) -> SuiteRecord:
    """Return what the hook wrote to `folder`, up to the last whole line. Raises StoreError for a line that is none."""
    path, record = folder / LINES, SuiteRecord()
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return record  # the child died before it could say anything
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from None
    for number, line in enumerate(_whole_lines(data), 1):
        try:
            _take(record, json.loads(line), folder)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(f"{path}, line {number}, is no record ({type(error).__name__}: {error})") from None
    return record


def _whole_lines(data: bytes) -> Iterator[bytes]:
    """Yield the lines of `data` that have an end: the last one may have been cut off."""
    yield from data[: data.rfind(b"\n") + 1].splitlines()


def _take(record: SuiteRecord, line: Mapping[str, Any], folder: Path) -> None:
    if "model" in line:
        record.pairs.append(Pair(folder / str(line["model"]), line["pass"], line["changed"], line["test"]))
    elif "ran" in line:
        record.tests[str(line["outcome"])] += 1
    elif "left" in line:
        record.left[str(line["left"])] += 1
    else:
        record.code, record.ended = int(line["exit"]), True
