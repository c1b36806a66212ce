"""Which statements of a front end each test reaches, for the orders by coverage; collected in child processes.

Coverage.py sees Python only, so only front ends that are written in Python can be measured: those of TVM, tinygrad and
torch's own exporters. Collecting runs every test once, which is what these orders cost beside the ranking itself.
"""

import gzip
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from miscompile.base.errors import UsageError
from miscompile.instances.code import digest_of, encoded
from miscompile.instances.instance import Instance
from miscompile.targets.registry import parse_target

_TRACER = "miscompile.migration.ranking.tracer"


@dataclass(slots=True)
class Reached:
    """Statements by test. `tests` gives numbers of `statements` (`file:line`) by an instance's digest.

    `endings` counts how the tests ended: `run`, `raised` (a refusal reaches statements as well), `no program`, `died`.
    """

    statements: list[str] = field(default_factory=list)
    tests: dict[str, frozenset[int | str]] = field(default_factory=dict)
    endings: Counter[str] = field(default_factory=Counter)


def coverage_of(
    instances: Sequence[Instance], target: str, sources: Sequence[str], *, limit: int = 60, python: str = sys.executable
) -> Reached:
    """Send instances through the front end `target` one by one; return the statements of `sources` that each reaches.

    `sources` are patterns of files, as `*/tvm/relax/frontend/*`. A test that takes more than `limit` seconds is ended;
    one that kills its process reaches nothing, and the others go on in a new one. What runs when modules are imported
    is not counted. Raises UsageError when coverage is not installed, the target cannot be loaded, or no test reaches
    anything, as when the front end is not written in Python.
    """
    if python == sys.executable and find_spec("coverage") is None:
        raise UsageError("statement coverage needs coverage.py; run: pip install coverage")
    parse_target(target)
    reached = Reached()
    numbers: dict[str, int] = {}
    settings = json.dumps({"target": target, "sources": list(sources), "limit": limit})
    for number, ending, lines in _heard(instances, [python, "-m", _TRACER, settings]):
        reached.endings[ending] += 1
        found = [f"{file}:{line}" for file, numbered in lines.items() for line in numbered]
        reached.tests[digest_of(instances[number])] = frozenset(numbers.setdefault(one, len(numbers)) for one in found)
    reached.statements.extend(numbers)
    if instances and not numbers:
        raise UsageError(
            f"no test reached a statement of {', '.join(sources)} on {target}: is its front end in Python?"
        )
    return reached


def _heard(
    instances: Sequence[Instance], command: Sequence[str]
) -> Iterator[tuple[int, str, Mapping[str, Sequence[int]]]]:
    """Yield number, ending and lines of every instance; a child that dies is followed by one that begins after it.

    Raises UsageError when a child dies before its first test: then none will come further.
    """
    begin = 0
    while begin < len(instances):
        with TemporaryFile() as given, TemporaryFile() as said:
            given.writelines(encoded(instance) + b"\n" for instance in instances[begin:])
            given.seek(0)
            child = subprocess.Popen(command, stdin=given, stdout=subprocess.PIPE, stderr=said)
            assert child.stdout is not None
            with child, child.stdout as heard:
                ready = heard.readline()
                for line in heard:
                    if not line.endswith(b"\n"):
                        break
                    data = json.loads(line)
                    yield begin, data["ending"], data["lines"]
                    begin += 1
            if not ready:
                raise UsageError(f"the front end cannot be loaded: {_last_line(said)}")
        if begin < len(instances):
            yield begin, "died", {}
            begin += 1


def _last_line(file: IO[bytes]) -> str:
    file.seek(0)
    return (file.read().decode("utf-8", "replace").strip().splitlines() or ["it says nothing"])[-1]


def write_reached(reached: Reached, path: Path) -> None:
    """Write what was collected to `path` (`.json.gz`). Raises UsageError when that is not possible."""
    data = {
        "statements": reached.statements,
        "tests": {digest: sorted(map(int, found)) for digest, found in reached.tests.items()},
        "endings": reached.endings,
    }
    try:
        with gzip.open(path, "wt", encoding="utf-8") as file:
            json.dump(data, file)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from None


def read_reached(path: Path) -> Reached:
    """Read what `write_reached` wrote. Raises UsageError when it is not there or damaged."""
    try:
        with gzip.open(path, "rt", encoding="utf-8") as file:
            data = json.load(file)
        tests = {str(digest): frozenset[int | str](found) for digest, found in data["tests"].items()}
        return Reached(list(data["statements"]), tests, Counter(data["endings"]))
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(f"{path} holds no statements by test ({type(error).__name__}: {error})") from None
