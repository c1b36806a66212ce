"""Relations between a library's operators, observed in child processes, because extreme inputs crash some of them.

A child runs one class of candidates after the other and prints the class with which it begins. After a crash, another
child continues with the next class.
"""

import json
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np

from miscompile.base.child import limit_memory
from miscompile.base.errors import UsageError
from miscompile.core.events import ProgressListener
from miscompile.harvest.constraints.generate import Operation
from miscompile.harvest.libraries.children import Harvested, run_on
from miscompile.harvest.libraries.hooks.recording import LINES, Lines
from miscompile.harvest.processes import need
from miscompile.harvest.relations.study import (
    InstanceResults,
    InstanceRunner,
    Relation,
    classes,
    compositions,
    counterparts,
    study,
    study_pair,
)
from miscompile.instances.archive import Archive, distinct, read_archive
from miscompile.instances.instance import Instance, Library
from miscompile.instances.values import Drawn, Held, Value, mapped

MODULES = {
    "torch": "miscompile.harvest.libraries.hooks.relations_torch",
    "keras": "miscompile.harvest.libraries.hooks.relations_keras",
}
"""Modules whose process runs the operators of a library. ONNX has none, because no two of its operators do the same."""

_MEMORY = 3 << 30
"""Memory limit of a child in bytes, in addition to that of its library after the import."""

_GIVEN = 8
"""Greatest number of instances of an operator that are tried on others."""

_LARGEST = 1 << 14
"""The most elements of an instance's tensors; larger ones take time and give no further information."""

_DEATHS = 50


def harvest_relations(
    library: Library, known: Path, on_progress: ProgressListener, seconds: float = 1800.0
) -> tuple[Archive, list[Relation]]:
    """Return instances that operators have taken over from each other, and the observed relations.

    `known` is an archive of instances that work; `seconds` limits each child. Raises UsageError when the library is
    missing or unsupported, or `known` cannot be read.
    """
    if library not in MODULES:
        raise UsageError(f"relations between operators of {library} are not looked for; there are torch and keras")
    need({library: library}, f"relations between operators of {library}")
    read_archive(known)
    harvested, relations = Harvested(), list[Relation]()

    def words(out: Path, first: int) -> tuple[str, ...]:
        return str(out), str(known), str(first)

    def on_begin(number: int) -> None:
        if number % 25 == 0:
            on_progress(f"{number} classes of operators of {library}")

    for out in run_on(MODULES[library], words, seconds, harvested, on_begin, most=_DEATHS):
        relations += _relations(out / LINES)
    return harvested.archive(library, (library,)), relations


def _relations(path: Path) -> list[Relation]:
    rows = [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]] if path.exists() else []
    said = [row["relation"] for row in rows if "relation" in row]
    return [Relation(**{**row, "forms": tuple(row["forms"])}) for row in said]


def write(words: Sequence[str], operations: Sequence[Operation], run: InstanceRunner) -> None:
    """Run as the child with OUT KNOWN FIRST; write relations and instances of the classes from number FIRST on."""
    out, known, first = Path(words[0]), _known(words[1]), int(words[2])
    limit_memory(_MEMORY)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    lines = Lines(out)
    alike = classes(operations)
    tasks: list[tuple[str, Callable[[], tuple[list[Relation], list[Instance]]]]] = [
        (members[0].api, partial(study, members, known, run)) for members in alike
    ]
    tasks += [(pair[0].api, partial(study_pair, pair, known, run)) for pair in counterparts(operations)]
    tasks.append(("compositions", lambda: (_composed(alike, known, run), [])))
    for number, (name, task) in enumerate(tasks[first:], first):
        print(json.dumps({"begin": number, "operator": name}), flush=True)
        relations, instances = task()
        for instance in distinct(instances):
            lines.instance(instance)
        for relation in relations:
            lines.write(relation=asdict(relation))
        lines.write(ran=name, outcome="related" if relations else "not related")
    lines.write(exit=0)


def _known(path: str) -> dict[str, list[Instance]]:
    found: defaultdict[str, list[Instance]] = defaultdict(list)
    try:
        instances = read_archive(Path(path)).instances
    except UsageError as error:
        sys.exit(str(error))
    for instance in instances:
        if len(found[instance.api]) < _GIVEN and instance.elements() <= _LARGEST:
            found[instance.api].append(instance)
    return found


def _composed(
    alike: Sequence[Sequence[Operation]], known: dict[str, list[Instance]], run: InstanceRunner
) -> list[Relation]:
    """Return the composed relations between functions of one tensor, on floats that include both signs and zero."""
    unary = [members for members in alike if _unary(members[0])]
    if not unary:
        return []
    first = unary[0][0]
    inputs = [
        Instance(first.library, first.api, "function", (Drawn("float32", (2, 3 + seed), low, high, seed),))
        for seed, (low, high) in enumerate([(-1, 1), (-3, 3), (0, 1), (0.1, 4), (-1, 0), (1, 8), (-20, 20)])
    ]
    return list(compositions([one for members in unary for one in members], inputs, run, after))


def _unary(operation: Operation) -> bool:
    required = [one for one in operation.parameters if one.required]
    return operation.form == "function" and len(required) == 1 and "tensor" in required[0].kinds


def after(instance: Instance, results: InstanceResults) -> Instance | None:
    """Return the instance with its tensor replaced by the result; None unless there is exactly one result."""
    if len(results) != 1 or results[0] is None:
        return None
    held = Held(results[0])

    def put(value: Value) -> Value:
        return held if isinstance(value, Drawn | Held) else value

    return replace(instance, args=tuple(mapped(value, put) for value in instance.args))
