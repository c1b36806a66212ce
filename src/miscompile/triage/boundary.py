"""The boundary of a bug: which element types, ranks, sizes, operands and opsets show it, and which do not.

Maintainers ask for it first, because it tells which branch of a pass or kernel is at fault. Each answer is a program
that was compiled and run: the reduced program with one thing changed.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from miscompile.base.errors import ModelError
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome
from miscompile.core.ports import PropertyOracle, Runner
from miscompile.core.tensor import Tensor
from miscompile.core.verdict import Evidence
from miscompile.graph.axes import behind_new_axis
from miscompile.triage.reduce.draft import Draft
from miscompile.triage.reduce.dtypes import retyped_everywhere
from miscompile.triage.reduce.engine import Budget
from miscompile.triage.reduce.graphs import GraphDrafts
from miscompile.triage.reduce.leaves import Leaf, changed, leaves, structural
from miscompile.triage.relaxation import DraftExaminer, other_constness, resized
from miscompile.triage.signature import symptom_of

D = TypeVar("D")

TYPES = {
    "float": ("float16", "bfloat16", "float32", "float64"),
    "int": ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
}
SIZES = (0, 1, 2, 3, 4, 8, 16, 17, 64)
FIRST_OPSET = 13
MOST_AXES = 2
"""Axes that are put in front of operands at most."""


@dataclass(frozen=True, slots=True)
class Probe(Generic[D]):
    """The reduced program with `value` in the place of what it has in one `aspect`."""

    aspect: str
    value: str
    draft: D


def boundary_of(
    case: Case,
    held: PropertyOracle,
    evidence: Evidence,
    outcome: Outcome | None,
    kind: GraphDrafts,
    runner: Runner,
    seed: int,
    budget: Budget,
) -> dict[str, Any]:
    """Return for each aspect the values that show the bug and those that do not, as lists `shows` and `works`.

    A value of which the program is invalid, or which the compiler refuses, is in neither. `budget` limits the
    examinations. Empty for a program that is no ONNX model.
    """
    try:
        draft = kind.take_apart(case, evidence)
    except ModelError:
        return {}
    examiner = DraftExaminer(case, held, symptom_of(evidence, outcome), evidence, kind, runner, seed)
    return boundary_from(probes(draft), examiner.asked, budget)


def boundary_from(made: Iterable[Probe[D]], asked: Callable[[D], bool | None], budget: Budget) -> dict[str, Any]:
    """Return the answers of `asked` by aspect, as `boundary_of` does.

    Of several probes with the same value the first one counts that is a valid program.
    """
    found: dict[str, dict[str, list[str]]] = {}
    known: set[tuple[str, str]] = set()
    tries = 0
    for probe in made:
        if tries >= budget.tries or budget.expired():
            break
        if (probe.aspect, probe.value) in known:
            continue
        tries += 1
        shows = asked(probe.draft)
        if shows is not None:
            known.add((probe.aspect, probe.value))
            lists = found.setdefault(probe.aspect, {"shows": [], "works": []})
            lists["shows" if shows else "works"].append(probe.value)
    return {aspect: lists for aspect, lists in found.items() if len(lists["shows"] + lists["works"]) > 1}


def probes(draft: Draft) -> Iterator[Probe[Draft]]:
    """Yield the programs to try; each aspect begins with the value that the reduced program has."""
    found = leaves(draft)
    yield from _types(draft, found)
    yield from _ranks(draft, found)
    yield from _sizes(draft, found)
    for leaf in found:
        yield from _constness(draft, leaf)
    yield from _opsets(draft)


def _types(draft: Draft, found: list[Leaf]) -> Iterator[Probe[Draft]]:
    fixed = structural(draft)
    for dtype in dict.fromkeys(leaf.value.dtype for leaf in found if leaf.name not in fixed):
        goals = next((types for types in TYPES.values() if dtype in types), ())
        names = ", ".join(f"`{leaf.name}`" for leaf in found if leaf.value.dtype == dtype and leaf.name not in fixed)
        for goal in dict.fromkeys((dtype, *goals)):
            changed_draft = draft if goal == dtype else retyped_everywhere(draft, dtype, goal)
            yield Probe(f"element type of {names}", goal, changed_draft)


def _ranks(draft: Draft, found: list[Leaf]) -> Iterator[Probe[Draft]]:
    """Put axes in front of all operands that have the highest rank, or of all."""
    fixed = structural(draft)
    ranked = [leaf for leaf in found if leaf.name not in fixed]
    highest = max((len(leaf.value.shape) for leaf in ranked), default=0)
    names = {leaf.name for leaf in ranked if len(leaf.value.shape) == highest}
    if not names:
        return
    aspect, deeper = f"rank of {', '.join(f'`{name}`' for name in sorted(names))}", draft
    yield Probe(aspect, str(highest), draft)
    for more in range(1, MOST_AXES + 1):
        deeper = changed(deeper, names, lambda _, value: Tensor(value.dtype, np.stack([value.array] * 2)))
        deeper = deeper.with_nodes(map(behind_new_axis, deeper.graph.nodes))
        yield Probe(aspect, str(highest + more), deeper)


def _sizes(draft: Draft, found: list[Leaf]) -> Iterator[Probe[Draft]]:
    """Change each size wherever it occurs, and the operands that hold shapes with it."""
    fixed = structural(draft)
    sized = [leaf for leaf in found if leaf.name not in fixed]
    for size in sorted({size for leaf in sized for size in leaf.value.shape}):
        names = sorted(leaf.name for leaf in sized if size in leaf.value.shape)
        aspect = f"size {size} of {', '.join(f'`{name}`' for name in names)}"
        yield Probe(aspect, str(size), draft)
        for goal in SIZES:
            if goal != size:
                yield Probe(aspect, str(goal), resized(draft, size, goal))


def _constness(draft: Draft, leaf: Leaf) -> Iterator[Probe[Draft]]:
    names = ("an input", "a constant")
    yield Probe(f"`{leaf.name}`", names[not leaf.fed], draft)
    other = other_constness(draft, leaf)
    if other is not None:
        yield Probe(f"`{leaf.name}`", names[leaf.fed], other)


def _opsets(draft: Draft) -> Iterator[Probe[Draft]]:
    """Import other versions of ONNX's operators, down to 13; what does not exist there is invalid."""
    model = draft.model
    own = model.opset
    yield Probe("opset", str(own), draft)
    for version in range(own - 1, FIRST_OPSET - 1, -1):
        opsets = {name: version if name in ("", "ai.onnx") else held for name, held in model.opsets.items()}
        yield Probe("opset", str(version), replace(draft, model=replace(model, opsets=opsets)))
