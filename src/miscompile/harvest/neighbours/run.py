"""Neighbours, made in child processes, because edges can exhaust the memory and crash a library.

A child makes the neighbours of one operator after the other, and prints the operator with which it begins. After a
crash, another child begins the operator again, without the neighbour that was tried last.
"""

import json
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from miscompile.base.child import limit_memory
from miscompile.base.errors import UsageError
from miscompile.core.events import ProgressListener
from miscompile.harvest.constraints.run import MEMORY, timely
from miscompile.harvest.libraries.children import Harvested, run_on
from miscompile.harvest.libraries.hooks.recording import LINES, Lines
from miscompile.harvest.neighbours.call import Subject
from miscompile.harvest.neighbours.coverage import PairCoverage
from miscompile.harvest.neighbours.walk import Refusal, neighbours
from miscompile.harvest.processes import need
from miscompile.instances.archive import Archive, read_archive
from miscompile.instances.classes import OPERATOR, Classes
from miscompile.instances.code import digest_of
from miscompile.instances.instance import Instance, Library

MODULES = {
    "onnx": "miscompile.harvest.neighbours.onnx",
    "torch": "miscompile.harvest.libraries.hooks.neighbours_torch",
    "keras": "miscompile.harvest.libraries.hooks.neighbours_keras",
}
"""Modules whose process makes the neighbours of a library's instances."""

COUNT = 40
"""The most neighbours of an operator, if nothing else is said."""

_DEATHS = 100
_TOO_MUCH = "it takes too much time or memory"
_DEADLY = "it ends the process of the library"

Subjects = Callable[[Iterable[Instance]], Iterable[tuple[Subject, list[Instance]]]]
"""Returns the operators that have neighbours, with their instances in tests, in an order that is always the same."""

Restate = Callable[[Instance], Iterable[Instance]]
"""Returns the same call in other versions of its operator."""


def harvest_neighbours(
    library: Library,
    tests: Path,
    on_progress: ProgressListener,
    seed: int = 0,
    count: int = COUNT,
    seconds: float = 3600.0,
) -> tuple[Archive, Classes]:
    """Return neighbours of the instances in the archive `tests`, at most `count` for each operator, and the classes.

    The figure `coverage` has a row for each operator (see `PairCoverage.as_json`). `seconds` limits each child. Raises
    UsageError when the library is missing or `tests` cannot be read.
    """
    need({library: library}, f"neighbours of instances of {library}")
    harvested = Harvested()
    rows: list[dict[str, Any]] = []
    found: dict[str, Mapping[str, str]] = {}
    deadly: list[str] = []
    again = False

    def words(out: Path, first: int) -> tuple[str, ...]:
        return str(out), str(seed), str(count), str(first - again), str(tests), ",".join(deadly)

    def on_begin(number: int) -> None:
        if number % 20 == 0:
            on_progress(f"{number} operators of {library}")

    for out in run_on(MODULES[library], words, seconds, harvested, on_begin, most=_DEATHS, name="operators from {}"):
        child = _read(out / LINES)
        rows += child.rows
        found |= child.classes
        again = bool(child.trying) and child.trying not in deadly
        if again:
            deadly.append(child.trying)
            on_progress(f"a neighbour ended the process of {library}; its operator begins again without it")
    archive = harvested.archive(library, (library,))
    return replace(archive, figures={**archive.figures, "coverage": rows}), found


@dataclass(slots=True)
class _Child:
    """The records of a child: rows and classes of operators, and the digest of the neighbour at which it died."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    classes: dict[str, Mapping[str, str]] = field(default_factory=dict)
    trying: str = ""


def _read(path: Path) -> _Child:
    child = _Child()
    for line in path.read_bytes().split(b"\n")[:-1] if path.exists() else ():
        if line.startswith(b'{"coverage"'):
            record = json.loads(line)
            child.rows.append(record["coverage"])
            child.classes |= record["classes"]
        elif line.startswith(b'{"trying"'):
            child.trying = json.loads(line)["trying"]
        elif line.startswith(b'{"exit"'):
            child.trying = ""
    return child


def write(words: Sequence[str], subjects: Subjects, refusal: Refusal, restate: Restate = lambda _: ()) -> None:
    """Run as the child with OUT SEED COUNT FIRST TESTS DEADLY; write neighbours of the operators from number FIRST on.

    DEADLY lists the digests of neighbours that ended earlier children, divided by commas. They are not tried again.
    `restate` gives each kept neighbour in other versions of its operator; they have the same classes, so they count
    neither in COUNT nor in the coverage.
    """
    out, seed, count, first = Path(words[0]), int(words[1]), int(words[2]), int(words[3])
    deadly = set(words[5].split(",")) if len(words) > 5 else set()
    try:
        tests = read_archive(Path(words[4])).instances
    except UsageError as error:
        sys.exit(str(error))
    limit_memory(MEMORY)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    lines = Lines(out)

    def limited(instance: Instance) -> str:
        digest = digest_of(instance)
        if digest in deadly:
            return _DEADLY
        lines.write(trying=digest)
        found = timely(refusal, instance)
        return _TOO_MUCH if found is None else found

    for number, (subject, known) in enumerate(subjects(tests)):
        if number < first:
            continue
        api = subject.operation.api
        print(json.dumps({"begin": number, "operator": api}), flush=True)
        coverage = PairCoverage(api)
        kept: dict[str, list[str]] = {}
        for instance in neighbours(subject, known, seed, count, limited, coverage):
            alike = [one for one in timely(restate, instance) or () if not limited(one)]
            kept[digest_of(instance)] = [digest_of(one) for one in alike]
            for one in (instance, *alike):
                lines.instance(one)
        found = {digest: {**items, OPERATOR: api} for digest, items in coverage.classes.items()}
        found |= {other: found[digest] for digest, others in kept.items() if digest in found for other in others}
        lines.write(coverage=coverage.as_json(), classes=found)
        lines.write(ran=api, outcome="some neighbour runs" if coverage.kept else "no neighbour runs")
    lines.write(exit=0)
