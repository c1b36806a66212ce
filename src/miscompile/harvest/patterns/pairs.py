"""The pair record: a model, and the pass that a test suite applies to it.

A test of an optimiser is a program on which a pass is expected to do something (OATest, section 3.1). Patterns are
cut from pairs of program and pass. Records are lines of JSON beside the models. A hook writes each record
immediately, so that a test that crashes its process loses no earlier record.
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

    `named` is empty if the source does not name the pass that it tests. `changed` is None if the source does not
    tell whether the pass changed the model. `test` names the test or other origin of the model.
    """

    model: Path
    named: str
    changed: bool | None
    test: str


@dataclass(slots=True)
class SuiteRecord:
    """The results of one test file (or folder of models).

    `tests` counts tests by outcome (`passed`, `failed`, `skipped`), `left` models that could not be recorded, by
    reason. `ended` tells that the child process ended normally; `code` is its exit code.
    """

    pairs: list[Pair] = field(default_factory=list)
    tests: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    ended: bool = False
    code: int | None = None


@dataclass(slots=True)
class Gathered:
    """The results of a source.

    `sources` counts its files by outcome: they `ran` to their end, had no test that could run (`empty`), crashed
    (`died`), exceeded the timeout (`time`), or were `stopped`. Results before a crash are included. `notes`
    describes the failures. `stopped`: the user interrupted it, so files are missing.
    """

    pairs: list[Pair] = field(default_factory=list)
    sources: Counter[str] = field(default_factory=Counter)
    tests: Counter[str] = field(default_factory=Counter)
    left: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    stopped: bool = False

    def add(self, record: SuiteRecord) -> None:
        """Add the results of one file."""
        self.pairs += record.pairs
        self.tests += record.tests
        self.left += record.left


def read_record(folder: Path) -> SuiteRecord:
    """Return the hook's records in `folder`, up to the last complete line. Raises StoreError for an invalid line."""
    path, record = folder / LINES, SuiteRecord()
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return record  # the child process crashed before it wrote anything
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from None
    for number, line in enumerate(_whole_lines(data), 1):
        try:
            _take(record, json.loads(line), folder)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(f"{path}, line {number}, is no record ({type(error).__name__}: {error})") from None
    return record


def _whole_lines(data: bytes) -> Iterator[bytes]:
    """Yield the complete lines of `data`; a crash may have truncated the last one."""
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
