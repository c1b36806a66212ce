"""The predicate of a bug: each condition of its reduced program is relaxed, and kept if the bug disappears.

The bug need not depend on every part that reduction has left: a size that cannot be smaller may be larger, and a
constant that is 1 may be 2. So every condition of the reduced program is changed once, alone, and the program is
examined again. Conditions without which the bug still shows are not part of the predicate.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Generic, TypeVar

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import MiscompileError, ModelError
from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.core.examination import examine
from miscompile.core.outcome import Outcome
from miscompile.core.ports import PropertyOracle, Runner
from miscompile.core.tensor import Tensor, tensor
from miscompile.core.verdict import Evidence, Holds, Violated
from miscompile.graph.axes import behind_new_axis
from miscompile.graph.edges import all_names
from miscompile.graph.model import Attribute, Node, TensorType, ValueInfo
from miscompile.graph.sizes import retargeted, stretched
from miscompile.triage.predicate import (
    ANY_SIZE,
    FLOATS,
    BugPredicate,
    NodePattern,
    ValuePattern,
    elements_of,
    inner_operators,
    plain_attribute,
)
from miscompile.triage.reduce.draft import Draft
from miscompile.triage.reduce.dtypes import retyped, retyped_everywhere
from miscompile.triage.reduce.engine import Budget
from miscompile.triage.reduce.graphs import GraphDrafts
from miscompile.triage.reduce.leaves import Leaf, changed, leaves, structural
from miscompile.triage.reduce.reduction import DraftKind
from miscompile.triage.signature import Symptom, similar, symptom_of

D = TypeVar("D")

MOST_NODES = 12
"""Largest number of nodes. A larger program is not reduced enough to tell which conditions its bug depends on."""

_OTHER_TYPES = {
    "float32": ("float64", "float16"), "float64": ("float32",), "float16": ("float32",), "bfloat16": ("float32",),
    "int64": ("int32",), "int32": ("int64",), "int8": ("uint8",), "uint8": ("int8",), "uint16": ("int32",),
    "int16": ("int32",), "uint32": ("int64",), "uint64": ("int64",), "int4": ("int8",), "uint4": ("uint8",),
    "int2": ("int4", "int8"), "uint2": ("uint4", "uint8"), "float8e4m3fn": ("float8e5m2",),
    "float8e5m2": ("float8e4m3fn",), "float8e4m3fnuz": ("float8e4m3fn",), "float8e5m2fnuz": ("float8e5m2",),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class PatternCondition:
    """One condition of a pattern: on the value or the node called `name` (its first result).

    `aspect` is a field of `ValuePattern` or `attribute`, and `detail` the size or the attribute's name.
    """

    name: str
    aspect: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Relaxation:
    """A draft in which some conditions do not hold; if it shows the bug, they are not needed."""

    draft: Draft
    conditions: tuple[PatternCondition, ...]


def predicate_of(
    case: Case,
    held: PropertyOracle,
    evidence: Evidence,
    outcome: Outcome | None,
    guilty: tuple[str, ...],
    kind: GraphDrafts,
    runner: Runner,
    seed: int,
    budget: Budget,
) -> BugPredicate | None:
    """Return the predicate of the bug that the reduced `case` shows; None when it has no ONNX program, or a large one.

    A program without nodes has a predicate if its outputs are constants with conditions: a compiler may have read one
    wrongly (https://github.com/openvinotoolkit/openvino/pull/37706).

    `evidence` and `outcome` are those of the reduced case, `guilty` its culprits. `budget` limits the examinations; a
    condition that was not examined stays.
    """
    try:
        draft = kind.take_apart(case, evidence)
    except ModelError:
        return None
    if len(draft.graph.nodes) > MOST_NODES:
        return None
    symptom = symptom_of(evidence, outcome)
    examined = DraftExaminer(case, held, symptom, evidence, kind, runner, seed)
    apart = unshared(draft)
    if examined.shows(apart):
        draft = apart
    needless: set[PatternCondition] = set()
    for tries, one in enumerate(relaxations(draft)):
        if tries >= budget.tries or budget.expired():
            break
        if not needless.issuperset(one.conditions) and examined.shows(one.draft):
            needless.update(one.conditions)
    values = {leaf.name: found for leaf in leaves(draft) if (found := _value(leaf, needless)) != ValuePattern()}
    if not draft.graph.nodes and not (values and all(one.constant for one in values.values())):
        return None  # it would match every program
    transform = evidence.faulty.build.transform
    return BugPredicate(
        evidence.faulty.target,
        symptom.kind,
        symptom.stage,
        symptom.text,
        guilty,
        transform.name if transform else "",
        tuple(_node(node, needless) for node in draft.graph.nodes),
        values,
        not evidence.faulty.build.disabled,
    )


def unshared(draft: Draft) -> Draft:
    """Return the draft in which each operand that is a leaf has a leaf of its own; reductions merge equal ones."""
    graph, seen = draft.graph, set[str]()
    names = {leaf.name for leaf in leaves(draft)}
    taken = all_names(graph)
    copies: dict[str, str] = {}

    def own(name: str) -> str:
        if name not in names:
            return name
        if name not in seen:
            seen.add(name)
            return name
        fresh = next(made for number in count() if (made := f"{name}_{number}") not in taken)
        taken.add(fresh)
        copies[fresh] = name
        return fresh

    nodes = tuple(replace(node, inputs=tuple(map(own, node.inputs))) for node in graph.nodes)
    infos = {info.name: info for info in graph.inputs}
    more = tuple(replace(infos[old], name=new) for new, old in copies.items() if old in infos)
    constants = {new: graph.initializers[old] for new, old in copies.items() if old in graph.initializers}
    feeds = tuple({**feed, **{new: feed[old] for new, old in copies.items() if old in feed}} for feed in draft.feeds)
    wider = draft.with_graph(
        nodes=nodes, inputs=(*graph.inputs, *more), initializers={**graph.initializers, **constants}
    )
    return replace(wider, feeds=feeds)


def relaxations(draft: Draft) -> Iterator[Relaxation]:
    """Yield the drafts to examine, each with the conditions that it relaxes; some break the rules of operators."""
    found = leaves(draft)
    yield from _other_attributes(draft)
    for leaf in found:
        yield from _other_elements(draft, leaf)
        yield from _other_constness(draft, leaf)
    yield from _other_types(draft, found)
    yield from _other_sizes(draft, found)
    yield from _other_ranks(draft, found)


def _other_attributes(draft: Draft) -> Iterator[Relaxation]:
    for place, node in enumerate(draft.graph.nodes):
        for name, attribute in node.attributes.items():
            condition = (PatternCondition(node.outputs[0], "attribute", name),)
            rest = {key: value for key, value in node.attributes.items() if key != name}
            for other in (rest, *({**node.attributes, name: one} for one in _others(attribute))):
                nodes = list(draft.graph.nodes)
                nodes[place] = replace(node, attributes=other)
                yield Relaxation(draft.with_nodes(nodes), condition)


def _others(attribute: Attribute) -> Iterator[Attribute]:
    value = attribute.value
    if attribute.kind == "int":
        yield from (replace(attribute, value=other) for other in (value + 1, value - 1))
    elif attribute.kind == "float":
        yield replace(attribute, value=value * 0.5 + 0.25)
    elif attribute.kind == "ints" and value:
        yield replace(attribute, value=tuple(item + 1 for item in value))


def _other_elements(draft: Draft, leaf: Leaf) -> Iterator[Relaxation]:
    if not leaf.fed and leaf.value.array.size and DTYPES[leaf.value.dtype].kind not in ("string", "complex"):
        yield Relaxation(changed(draft, {leaf.name}, _altered), (PatternCondition(leaf.name, "elements"),))


def _altered(name: str, value: Tensor) -> Tensor:
    """Return other elements in the range of the type: moved by about a half, or by one."""
    del name
    numbers, kind = value.numbers(), DTYPES[value.dtype]
    if kind.kind == "bool":
        return Tensor(value.dtype, ~value.array)
    if kind.kind == "float":
        return tensor(np.asarray(numbers.astype(np.float64) * 0.5 + 0.375), value.dtype)
    moved = np.where(numbers >= kind.high, numbers - 1, numbers + 1)
    return tensor(np.asarray(moved, numbers.dtype), value.dtype)


def _other_constness(draft: Draft, leaf: Leaf) -> Iterator[Relaxation]:
    """Feed a constant, or make a constant of an input; a constant that may be fed has no elements to agree with."""
    other = other_constness(draft, leaf)
    if other is not None:
        conditions = (PatternCondition(leaf.name, "constant"), PatternCondition(leaf.name, "elements"))
        yield Relaxation(other, conditions[: 1 if leaf.fed else 2])


def other_constness(draft: Draft, leaf: Leaf) -> Draft | None:
    """Return the draft with an input as a constant, or a constant as an input.

    None for an input of several feeds, which no constant can replace.
    """
    graph = draft.graph
    inputs = tuple(info for info in graph.inputs if info.name != leaf.name)
    if leaf.fed:
        if len(draft.feeds) != 1:
            return None
        frozen = draft.with_graph(inputs=inputs, initializers={**graph.initializers, leaf.name: leaf.value})
        feeds = tuple({name: value for name, value in feed.items() if name != leaf.name} for feed in draft.feeds)
        return replace(frozen, feeds=feeds)
    info = ValueInfo(leaf.name, TensorType(leaf.value.dtype, leaf.value.shape))
    constants = {name: value for name, value in graph.initializers.items() if name != leaf.name}
    fed = draft.with_graph(inputs=(*inputs, info), initializers=constants)
    return replace(fed, feeds=tuple({**feed, leaf.name: leaf.value} for feed in draft.feeds or ({},)))


def _other_types(draft: Draft, found: list[Leaf]) -> Iterator[Relaxation]:
    """Change each element type wherever it occurs, and in one leaf alone."""
    for dtype in dict.fromkeys(leaf.value.dtype for leaf in found):
        same = [leaf.name for leaf in found if leaf.value.dtype == dtype]
        for goal in _OTHER_TYPES.get(dtype, ()):
            yield Relaxation(
                retyped_everywhere(draft, dtype, goal), tuple(PatternCondition(name, "dtype") for name in same)
            )
            if len(same) > 1:
                for name in same:
                    yield Relaxation(retyped(draft, {name}, goal), (PatternCondition(name, "dtype"),))


def _other_sizes(draft: Draft, found: list[Leaf]) -> Iterator[Relaxation]:
    """Change each size wherever it occurs, and the operands that hold shapes with it."""
    fixed = structural(draft)
    sized = [leaf for leaf in found if leaf.name not in fixed]
    for size in sorted({size for leaf in sized for size in leaf.value.shape}):
        names = {leaf.name for leaf in sized if size in leaf.value.shape}
        conditions = [PatternCondition(name, "shape", str(size)) for name in sorted(names)]
        conditions += [
            PatternCondition(leaf.name, "elements") for leaf in found if leaf.name in fixed and size in leaf.value.array
        ]
        for goal in (size + 1, 2 * size + 3):
            yield Relaxation(resized(draft, size, goal), tuple(conditions))


def resized(draft: Draft, size: int, goal: int) -> Draft:
    """Return the draft with `goal` for each dimension of `size` in all leaves, and in operands that hold shapes."""
    found, fixed = leaves(draft), structural(draft)
    names = {leaf.name for leaf in found if size in leaf.value.shape and leaf.name not in fixed}

    def change(name: str, value: Tensor) -> Tensor:
        return retargeted(value, size, goal, scale=False) if name in fixed else stretched(value, size, goal)

    return changed(draft, names | {leaf.name for leaf in found if leaf.name in fixed}, change)


def _other_ranks(draft: Draft, found: list[Leaf]) -> Iterator[Relaxation]:
    """Give a leading axis of two to the leaves of the highest rank, then to all; attributes that count axes follow."""
    fixed = structural(draft)
    ranked = [leaf for leaf in found if leaf.name not in fixed]
    highest = max((len(leaf.value.shape) for leaf in ranked), default=0)
    conditions = tuple(PatternCondition(leaf.name, "rank") for leaf in ranked)
    for names in ({leaf.name for leaf in ranked if len(leaf.value.shape) == highest}, {leaf.name for leaf in ranked}):
        deeper = changed(draft, names, lambda _, value: Tensor(value.dtype, np.stack([value.array, value.array])))
        yield Relaxation(deeper.with_nodes(behind_new_axis(node) for node in deeper.graph.nodes), conditions)
    for leaf in ranked:
        deeper = changed(draft, {leaf.name}, lambda _, value: Tensor(value.dtype, value.array[np.newaxis]))
        yield Relaxation(deeper, (PatternCondition(leaf.name, "rank"),))


@dataclass(slots=True)
class DraftExaminer(Generic[D]):
    """Tests whether drafts show the bug of one reduced case: the same violation of `held`, in the same build."""

    case: Case
    held: PropertyOracle
    symptom: Symptom
    evidence: Evidence
    kind: DraftKind[D]
    runner: Runner
    seed: int

    def shows(self, draft: D) -> bool:
        """Tell whether a draft is a valid, well-defined program that shows the bug in the same build."""
        return self.asked(draft) is True

    def asked(self, draft: D) -> bool | None:
        """Return whether a draft shows the bug in the same build.

        None when it is no valid, well-defined program, when a build refuses it, or when it shows another bug.
        """
        try:
            case = self.kind.put_together(self.kind.tidy(draft), self.case.recipe)
        except MiscompileError:
            return None
        seen = examine(case, self.held, self.runner, stream(self.seed, "relax"))
        if isinstance(seen.verdict, Holds):
            return False if self.kind.defined(draft) else None
        if not isinstance(seen.verdict, Violated):
            return None
        found = seen.verdict.evidence
        same = similar(symptom_of(found, seen.faulty), self.symptom)
        same = same and found.faulty.build == self.evidence.faulty.build
        return True if same and self.kind.defined(draft) else None


def _node(node: Node, needless: set[PatternCondition]) -> NodePattern:
    attributes = {
        name: value
        for name, attribute in node.attributes.items()
        if PatternCondition(node.outputs[0], "attribute", name) not in needless
        and (value := plain_attribute(attribute.value)) is not None
    }
    domain = "" if node.domain == "ai.onnx" else node.domain
    return NodePattern(node.op, node.inputs, node.outputs, attributes, domain, inner_operators(node))


def _value(leaf: Leaf, needless: set[PatternCondition]) -> ValuePattern:
    """Return the conditions on a leaf that are needed."""

    def needed(aspect: str) -> bool:
        return PatternCondition(leaf.name, aspect) not in needless

    kind = DTYPES[leaf.value.dtype].kind
    dtype: str | None = leaf.value.dtype
    if not needed("dtype"):
        dtype = FLOATS if kind == "float" else None
    sizes = tuple(
        ANY_SIZE if PatternCondition(leaf.name, "shape", str(size)) in needless else size for size in leaf.value.shape
    )
    ranked = needed("rank")
    return ValuePattern(
        dtype,
        len(leaf.value.shape) if ranked else None,
        sizes if ranked and any(size != ANY_SIZE for size in sizes) else None,
        (not leaf.fed) if needed("constant") else None,
        elements_of(leaf.value) if not leaf.fed and needed("elements") else None,
    )
