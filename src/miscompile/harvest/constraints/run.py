"""Instances from constraints, made in child processes, because boundary values can exhaust the memory.

A child writes the instances of one operator after the other, and prints the operator with which it begins. After a
crash, another child continues with the next operator.
"""

import json
import signal
import sys
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import TypeVar

import numpy as np

from miscompile.base.child import limit_memory
from miscompile.base.errors import UsageError
from miscompile.core.events import ProgressListener
from miscompile.harvest.constraints.generate import InstanceCheck, Operation, generate
from miscompile.harvest.libraries.children import Harvested, run_on
from miscompile.harvest.libraries.hooks.recording import Lines
from miscompile.harvest.processes import need
from miscompile.instances.archive import Archive, read_archive
from miscompile.instances.instance import Instance, Library

MODULES = {
    "onnx": "miscompile.harvest.constraints.onnx",
    "torch": "miscompile.harvest.libraries.hooks.constraints_torch",
    "keras": "miscompile.harvest.libraries.hooks.constraints_keras",
}
"""Modules whose process makes the instances of a library."""

MEMORY = 3 << 30
"""Memory limit of a child in bytes, in addition to that of its library after the import."""

_SECONDS = 3
"""Timeout of an instance in seconds; small ones run in milliseconds."""

_BASES = 2
"""Number of instances of tests from which those of an operator are made."""

_LARGEST = 1 << 14
"""Greatest number of elements of their tensors together."""

_DEATHS = 100
"""Number of crashed children after which the harvest ends."""


def harvest_constraints(
    library: Library,
    on_progress: ProgressListener,
    seed: int = 0,
    count: int = 20,
    bases: Path | None = None,
    seconds: float = 1800.0,
) -> Archive:
    """Return instances within the documented constraints of the library's operators, and boundary instances.

    At most `count` of either kind for each operator. `bases` is an archive of known valid instances. `seconds` limits
    each child. Raises UsageError when the library is missing or `bases` cannot be read.
    """
    need({library: library}, f"constraints on operators of {library}")
    if bases is not None:
        read_archive(bases)
    harvested = Harvested()

    def words(out: Path, first: int) -> tuple[str, ...]:
        return str(out), str(seed), str(count), str(first), str(bases or "")

    def on_begin(number: int) -> None:
        if number % 50 == 0:
            on_progress(f"{number} operators of {library}")

    for _ in run_on(MODULES[library], words, seconds, harvested, on_begin, most=_DEATHS, name="operators from {}"):
        pass
    return harvested.archive(library, (library,))


def write(words: Sequence[str], operations: Sequence[Operation], runs: InstanceCheck) -> None:
    """Run as the child with OUT SEED COUNT FIRST [BASES]; write the instances of `operations` from number FIRST on."""
    out, seed, count, first = Path(words[0]), int(words[1]), int(words[2]), int(words[3])
    known = _known(words[4]) if len(words) > 4 and words[4] else {}
    limit_memory(MEMORY)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    lines = Lines(out)
    left: Counter[str] = Counter()

    def works(instance: Instance) -> bool:
        return bool(timely(runs, instance))

    for number, operation in enumerate(operations[first:], first):
        print(json.dumps({"begin": number, "operator": operation.api}), flush=True)
        found = 0
        for instance in generate(operation, seed, count, works, known.get(operation.api, ())):
            if instance is None:
                left["tries that the library refused"] += 1
            else:
                lines.instance(instance)
                found += 1
        lines.write(ran=operation.api, outcome="some run" if found else "none runs")
        lines.leave(left)
    lines.write(exit=0)


def _known(path: str) -> dict[str, list[Instance]]:
    try:
        return bases_in(Path(path))
    except UsageError as error:
        sys.exit(str(error))


def bases_in(path: Path) -> dict[str, list[Instance]]:
    """Return the first few small instances of each operator. Raises UsageError for a file that is no archive."""
    found: defaultdict[str, list[Instance]] = defaultdict(list)
    for instance in read_archive(path).instances:
        if len(found[instance.api]) < _BASES and instance.elements() <= _LARGEST:
            found[instance.api].append(instance)
    return found


Judgement = TypeVar("Judgement")


class _TooLong(Exception):  # noqa: N818 - ends a call, no failure
    """An instance took too long."""


def timely(judge: Callable[[Instance], Judgement], instance: Instance) -> Judgement | None:
    """Return what `judge` says of an instance, None when it exceeds the limits of time or memory."""

    def over(number: int, frame: FrameType | None) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(_SECONDS)
    try:
        return judge(instance)
    except (_TooLong, MemoryError):
        return None
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
