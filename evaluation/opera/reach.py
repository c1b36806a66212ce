"""Which statements of a front end each test reaches, for the orders by coverage; collected in child processes.

Coverage.py sees Python only, so only front ends that are written in Python can be measured: those of TVM, tinygrad and
torch's own exporters. Collecting runs every test once, which is what these orders cost beside the ranking itself.
"""

import gzip
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from subprocess import PIPE
from tempfile import TemporaryFile
from typing import IO

from miscompile.base.child import start
from miscompile.base.errors import UsageError
from miscompile.core.events import ProgressListener
from miscompile.instances.code import digest_of, encoded
from miscompile.instances.instance import Instance
from miscompile.targets.registry import parse_target

_TRACER = "evaluation.opera.tracer"
_ROOT = Path(__file__).parents[2]

PYTHON: Mapping[str, tuple[str, ...]] = {
    "onnx-tvm": ("*/tvm/relax/frontend/onnx/*",),
    "torch-tvm": ("*/tvm/relax/frontend/torch/*",),
    "onnx-tinygrad": ("*/tinygrad/nn/onnx.py", "*/tinygrad/frontend/onnx.py"),
    "torch-onnxruntime": ("*/torch/onnx/_internal/*", "*/onnxscript/function_libs/*"),
    "torch-inductor": ("*/torch/_inductor/lowering.py", "*/torch/_inductor/decomposition.py", "*/torch/_decomp/*"),
    "keras-openvino": ("*/keras/src/backend/openvino/*",),
}
"""By the names of front ends, the files of those that are written in Python, whose statements can be counted."""


@dataclass(slots=True)
class Reached:
    """Statements by test. `tests` gives numbers of `statements` (`file:line`) by an instance's digest.

    `endings` counts how the tests ended: `run`, `raised` (a refusal reaches statements as well), `no program`, `died`.
    """

    statements: list[str] = field(default_factory=list)
    tests: dict[str, frozenset[int | str]] = field(default_factory=dict)
    endings: Counter[str] = field(default_factory=Counter)


def coverage_of(
    instances: Sequence[Instance],
    target: str,
    sources: Sequence[str],
    *,
    constants: bool = False,
    limit: int = 60,
    python: str = sys.executable,
) -> Reached:
    """Send instances through the front end `target` one by one; return the statements of `sources` that each reaches.

    `sources` are patterns of files, as `*/tvm/relax/frontend/*`; `constants` as in `migrate`. A test that takes more
    than `limit` seconds is ended; one that kills its process reaches nothing, and the others go on in a new one. What
    runs when modules are imported is not counted. Raises UsageError when coverage is not installed, the target cannot
    be loaded, or no test reaches anything, as when the front end is not written in Python.
    """
    if python == sys.executable:
        need_coverage()
    parse_target(target)
    reached = Reached()
    numbers: dict[str, int] = {}
    settings = json.dumps({"target": target, "sources": list(sources), "limit": limit, "constants": constants})
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


def reached_by(
    instances: Sequence[Instance],
    front: str,
    target: str,
    place: Path,
    on_progress: ProgressListener,
    *,
    constants: bool,
) -> Reached:
    """Return the statements that instances reach in the front end called `front`; kept at `place` when collected once.

    Collecting runs every test. Raises UsageError as `coverage_of` does, and for a front end that is not in Python.
    """
    check_front(front)
    if place.exists():
        known = read_reached(place)
        if all(digest_of(instance) in known.tests for instance in instances):
            return known
    on_progress(f"{front}: collecting the statements that {len(instances):,} tests reach")
    reached = coverage_of(instances, target, PYTHON[front], constants=constants)
    write_reached(reached, place)
    return reached


def check_front(front: str) -> None:
    """Raise UsageError unless the front end called `front` is written in Python."""
    if front not in PYTHON:
        can = ", ".join(PYTHON)
        raise UsageError(f"statements of {front} cannot be counted, it is not written in Python; those of {can} can")


def need_coverage() -> None:
    """Raise UsageError unless coverage.py is installed."""
    if find_spec("coverage") is None:
        raise UsageError("statement coverage needs coverage.py; run: pip install coverage")


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
            child = start(command, stdin=given, stdout=PIPE, stderr=said, environment=_environment())
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


def _environment() -> dict[str, str]:
    """Return this process's variables, with the repository on the path, because `evaluation` is not installed."""
    path = os.environ.get("PYTHONPATH", "")
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(_ROOT), path)))}


def _last_line(file: IO[bytes]) -> str:
    file.seek(0)
    return (file.read().decode("utf-8", "replace").strip().splitlines() or ["it says nothing"])[-1]


def write_reached(reached: Reached, path: Path) -> None:
    """Write what was collected to `path` (`.json.gz`), whole or not at all. Raises UsageError when it cannot be."""
    data = {
        "statements": reached.statements,
        "tests": {digest: sorted(map(int, found)) for digest, found in reached.tests.items()},
        "endings": reached.endings,
    }
    fresh = path.with_name(f".new-{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(fresh, "wt", encoding="utf-8") as file:
            json.dump(data, file)
        fresh.replace(path)
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
