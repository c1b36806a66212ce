"""Sequences and optionals as inner values: blocks whose inputs and outputs are tensors.

A scope holds dense tensors only, so a block adds its nodes at once, and its inner values have no entry in the scope: no
other operator can use them. The elements of every result are elements of the operands or constants. The capability
probe asks each target about each block and element type (`questions`). Sources: the pages on SequenceConstruct,
SequenceEmpty, SequenceInsert, SequenceErase, SequenceAt, SequenceLength, SplitToSequence, ConcatFromSequence,
SequenceMap, Optional, OptionalHasElement and OptionalGetElement of the ONNX documentation.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from miscompile.base.dtypes import DTYPES, NUMBERS
from miscompile.base.errors import RejectedDraft
from miscompile.base.rng import stream
from miscompile.core.tensor import Tensor
from miscompile.graph.attributes import PlainValue, attributes
from miscompile.graph.model import Attribute, Graph, Node, SequenceType, TensorType, ValueInfo
from miscompile.ops.facts import TRUTH, Bounds, Exactness, Facts, settle
from miscompile.ops.registry import version_of
from miscompile.ops.spec import Operand, OperatorLimits, Shape
from miscompile.ops.structural import hull
from miscompile.ops.support import CallKey, Support
from miscompile.ops.values import Style, choose_range
from miscompile.producers.control.forms import Question
from miscompile.producers.finish import finish, leaves
from miscompile.producers.motifs.plant import Planted
from miscompile.producers.scope import Scope

DTYPES_OF_BLOCKS = (*(dtype for dtype in NUMBERS if dtype != "bfloat16"), "bool")
"""Element types that sequences hold in every opset; bfloat16 is not among them."""

_LOOKS = 6
_MOST_PARTS = 4


@dataclass(slots=True)
class ContainerBlock:
    """A block under construction: its `nodes` are added to the scope when it is complete."""

    scope: Scope
    dtype: str
    planted: Planted

    @property
    def rng(self) -> random.Random:
        """The stream of the case."""
        return self.scope.rng

    def between(self, op: str, *inputs: str, **found: PlainValue | Attribute | None) -> str:
        """Add a node that gives a sequence or an optional; return its name."""
        return self.scope.add_inner(op, inputs, _attributes(found))

    def result(
        self, op: str, inputs: Sequence[str], kind: TensorType, facts: Facts, **found: PlainValue | None
    ) -> Operand:
        """Add a node that gives a tensor."""
        made = self.scope.add_outer(op, inputs, _attributes(found), kind, facts)
        self.planted.results.append(made)
        return made

    def place(self, value: int) -> str:
        """Return the name of a scalar index of an element: int64 or int32, mostly a constant."""
        dtype = "int64" if self.rng.random() < 0.7 else "int32"
        known = Tensor(dtype, np.array(value, dtype))
        if self.rng.random() < 0.15:
            return self.scope.new_pinned(known).name
        return self.scope.new_constant(known, as_node=self.rng.random() < 0.1).name

    def value(self, shape: Shape | None = None) -> Operand:
        """Return an existing value of `shape`, or of any shape with elements and an axis, or a new input."""
        pool = self.scope.pool.get(self.dtype, ())
        for _ in range(_LOOKS if pool else 0):
            operand = pool[int(self.rng.random() * len(pool))]
            fine = operand.shape == shape if shape is not None else operand.rank > 0 and 0 not in operand.shape
            if operand.value is None and fine:
                return operand
        made = tuple(self.rng.randint(1, 5) for _ in range(self.rng.randint(1, 3))) if shape is None else shape
        return self.scope.new_input(self.dtype, made, choose_range(self.dtype, self.scope.style))

    def index(self, count: int) -> int:
        """Draw a place in a sequence of `count` elements, sometimes counted from the back."""
        place = self.rng.randrange(count)
        return place - count if self.rng.random() < 0.3 else place


def _attributes(found: Mapping[str, PlainValue | Attribute | None]) -> dict[str, Attribute]:
    plain = {name: value for name, value in found.items() if not isinstance(value, Attribute)}
    ready = {name: value for name, value in found.items() if isinstance(value, Attribute)}
    return {**attributes(plain), **ready}


def _kind(operand: Operand) -> TensorType:
    return TensorType(operand.dtype, operand.shape)


def _elements(operands: Sequence[Operand]) -> Facts:
    """Facts of a tensor that holds elements of all of `operands`."""
    facts = tuple(operand.facts for operand in operands)
    found = hull(facts)
    return settle(operands[0].dtype, Bounds(found.lo, found.hi, found.integral), Exactness.MOVES, facts)


def _parts(work: ContainerBlock) -> tuple[str, list[tuple[Shape, Operand]], int, bool]:
    """Split a value; return the sequence, each part's shape with the value it comes from, the axis, and `keepdims`."""
    rng, x = work.rng, work.value()
    axis = rng.randrange(x.rank)
    size, form = x.shape[axis], rng.choice(("ones", "ones", "chunk", "sizes"))
    written = axis if axis else rng.choice((None, 0))
    kept = form != "ones" or rng.random() < 0.5
    inputs = [x.name]
    sizes = [1] * size
    if form == "chunk":
        chunk = rng.randint(1, size)
        sizes = [min(chunk, size - start) for start in range(0, size, chunk)]
        inputs.append(work.place(chunk))
    elif form == "sizes":
        cuts = sorted(rng.sample(range(1, size), min(size - 1, rng.randint(0, _MOST_PARTS))))
        sizes = [after - before for before, after in zip([0, *cuts], [*cuts, size], strict=True)]
        inputs.append(work.scope.new_constant(Tensor("int64", np.array(sizes, np.int64))).name)
    name = work.between("SplitToSequence", *inputs, axis=written, keepdims=None if kept else 0)
    shapes = [(*x.shape[:axis], *((part,) if kept else ()), *x.shape[axis + 1 :]) for part in sizes]
    return name, [(shape, x) for shape in shapes], axis, kept


def _several(work: ContainerBlock) -> list[Operand]:
    """Return values of one shape, possibly with repetition."""
    found = [work.value()]
    for _ in range(work.rng.randint(0, 2)):
        found.append(found[0] if work.rng.random() < 0.2 else work.value(found[0].shape))
    return found


def _construct(work: ContainerBlock, parts: Sequence[Operand]) -> str:
    """Make a sequence: at once, or from an empty one."""
    if work.rng.random() < 0.7:
        return work.between("SequenceConstruct", *[part.name for part in parts])
    code = None if work.dtype == "float32" and work.rng.random() < 0.5 else DTYPES[work.dtype].code
    name = work.between("SequenceEmpty", dtype=code)
    for part in parts:
        name = work.between("SequenceInsert", name, part.name)
    return name


def _split_at(work: ContainerBlock) -> None:
    name, parts, _, _ = _parts(work)
    for _ in range(work.rng.randint(1, 2)):
        place = work.index(len(parts))
        shape, x = parts[place]
        work.result("SequenceAt", (name, work.place(place)), TensorType(x.dtype, shape), x.facts)


def _split_concat(work: ContainerBlock) -> None:
    """Split and joined again, along the same axis: the value itself; or stacked along a new axis."""
    name, parts, axis, kept = _parts(work)
    shapes, x = [shape for shape, _ in parts], parts[0][1]
    if not kept or (len(set(shapes)) == 1 and work.rng.random() < 0.4):
        if len(set(shapes)) > 1:
            raise RejectedDraft("parts of several shapes cannot be stacked")
        new = work.rng.randint(0, len(shapes[0]))
        kind = TensorType(x.dtype, (*shapes[0][:new], len(shapes), *shapes[0][new:]))
        work.result("ConcatFromSequence", (name,), kind, x.facts, axis=new, new_axis=1)
        return
    work.result("ConcatFromSequence", (name,), _kind(x), x.facts, axis=axis)


def _construct_at(work: ContainerBlock) -> None:
    parts = _several(work)
    name, place = _construct(work, parts), work.index(len(parts))
    work.result("SequenceAt", (name, work.place(place)), _kind(parts[place]), parts[place].facts)


def _construct_concat(work: ContainerBlock) -> None:
    parts = _several(work)
    name, shape = _construct(work, parts), parts[0].shape
    if work.rng.random() < 0.5:
        new = work.rng.randint(0, len(shape))
        kind = TensorType(work.dtype, (*shape[:new], len(parts), *shape[new:]))
        work.result("ConcatFromSequence", (name,), kind, _elements(parts), axis=new, new_axis=1)
        return
    axis = work.rng.randrange(len(shape))
    kind = TensorType(work.dtype, (*shape[:axis], shape[axis] * len(parts), *shape[axis + 1 :]))
    work.result("ConcatFromSequence", (name,), kind, _elements(parts), axis=axis)


def _insert_erase(work: ContainerBlock) -> None:
    """A sequence with one element inserted and one erased, of which one element is read."""
    parts = [*_several(work), work.value()]  # the elements of a sequence may have several shapes
    name = _construct(work, parts)
    place = work.rng.randint(-len(parts), len(parts))
    extra = work.value()
    name = work.between("SequenceInsert", name, extra.name, work.place(place))
    parts.insert(place, extra)
    place = work.index(len(parts))
    name = work.between("SequenceErase", name, work.place(place))
    del parts[place]
    place = work.index(len(parts))
    work.result("SequenceAt", (name, work.place(place)), _kind(parts[place]), parts[place].facts)


def _length(work: ContainerBlock) -> None:
    parts = _several(work)
    _count(work, _construct(work, parts), len(parts))


def _split_length(work: ContainerBlock) -> None:
    name, parts, _, _ = _parts(work)
    _count(work, name, len(parts))


def _count(work: ContainerBlock, name: str, count: int) -> None:
    facts = Facts(count, count, integral=True, exact=True)
    work.result("SequenceLength", (name,), TensorType("int64", ()), facts)


def _mapped(work: ContainerBlock) -> None:
    """SequenceMap with a body that moves elements: an Identity, or a choice of the larger of two tensors."""
    parts = _several(work)
    name, shape = _construct(work, parts), parts[0].shape
    inner, outer = (
        ValueInfo("element", TensorType(work.dtype, shape)),
        ValueInfo("mapped", TensorType(work.dtype, shape)),
    )
    other = work.value(shape)
    larger = work.dtype != "bool" and work.rng.random() < 0.7
    captured = larger and work.rng.random() < 0.5
    inputs: tuple[ValueInfo, ...] = (inner,)
    given = [name]
    node = Node("Identity", ("element",), ("mapped",))
    if larger:
        node = Node("Max", ("element", other.name if captured else "second"), ("mapped",))
        if not captured:
            inputs, given = (inner, ValueInfo("second", inner.type)), [name, other.name]
    body = Attribute("graph", Graph("body", inputs, (outer,), (node,), {}))
    mapped = work.between("SequenceMap", *given, body=body)
    facts = _elements([*parts, other]) if larger else _elements(parts)
    place = work.index(len(parts))
    work.result("SequenceAt", (mapped, work.place(place)), TensorType(work.dtype, shape), facts)


def _optional_tensor(work: ContainerBlock) -> None:
    x = work.value()
    name = work.between("Optional", x.name)
    if work.rng.random() < 0.4:
        work.result("OptionalHasElement", (name,), TensorType("bool", ()), TRUTH)
    work.result("OptionalGetElement", (name,), _kind(x), x.facts)


def _optional_sequence(work: ContainerBlock) -> None:
    parts = _several(work)
    name = work.between("OptionalGetElement", work.between("Optional", _construct(work, parts)))
    place = work.index(len(parts))
    work.result("SequenceAt", (name, work.place(place)), _kind(parts[place]), parts[place].facts)


def _optional_nothing(work: ContainerBlock) -> None:
    """An empty optional, tested by OptionalHasElement."""
    element: TensorType | SequenceType = TensorType(work.dtype, work.value().shape)
    if work.rng.random() < 0.4:
        element = SequenceType(element)
    name = work.between("Optional", type=Attribute("type", element))
    work.result("OptionalHasElement", (name,), TensorType("bool", ()), Facts(0, 0, integral=True, exact=True))


_Plan = tuple[Callable[[ContainerBlock], None], tuple[str, ...]]

_SEQUENCES: Mapping[str, _Plan] = {
    "split_at": (_split_at, ("SplitToSequence", "SequenceAt")),
    "split_concat": (_split_concat, ("SplitToSequence", "ConcatFromSequence")),
    "construct_at": (_construct_at, ("SequenceConstruct", "SequenceAt")),
    "construct_concat": (_construct_concat, ("SequenceConstruct", "ConcatFromSequence")),
    "insert_erase": (_insert_erase, ("SequenceInsert", "SequenceErase")),
    "length": (_length, ("SequenceLength",)),
    "split_length": (_split_length, ("SplitToSequence", "SequenceLength")),
    "mapped": (_mapped, ("SequenceMap",)),
}
_OPTIONALS: Mapping[str, _Plan] = {
    "optional_tensor": (_optional_tensor, ("Optional", "OptionalGetElement")),
    "optional_sequence": (_optional_sequence, ("Optional", "OptionalGetElement")),
    "optional_nothing": (_optional_nothing, ("Optional", "OptionalHasElement")),
}
BLOCKS: Mapping[str, _Plan] = {**_SEQUENCES, **_OPTIONALS}
"""Blocks by name, with the operators whose versions distinguish the forms of a block."""

_SINCE = {"mapped": 17, **dict.fromkeys(_OPTIONALS, 15)}


def block_key(name: str, dtype: str, opset: int) -> CallKey:
    """Return the key of a block in the support table."""
    version = max(version_of(op, opset) for op in BLOCKS[name][1])
    return f"block:{name}-{version}({dtype}){dtype}"


def taken_blocks(support: Support, opset: int, dtypes: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the (block, element type) pairs that the target supports under `opset`; an open table admits all."""
    return tuple(
        (name, dtype)
        for name in BLOCKS
        if opset >= _SINCE.get(name, 0)
        for dtype in DTYPES_OF_BLOCKS
        if dtype in dtypes and (support.open or block_key(name, dtype, opset) in support.taken)
    )


def plant_container(scope: Scope, name: str, dtype: str) -> Planted | None:
    """Plant the block called `name` on values of `dtype`; None, with an unchanged scope, when that fails."""
    mark = scope.mark()
    work = ContainerBlock(scope, dtype, Planted())
    try:
        BLOCKS[name][0](work)
    except RejectedDraft:
        scope.rollback(mark)
        return None
    return work.planted


_SAMPLES = 3


def questions(opsets: Sequence[int]) -> Iterator[Question]:
    """Yield probes of each block in each type and version: several for each key.

    The newest opset comes first, and within it the most common types.
    """
    asked: set[CallKey] = set()
    for opset in sorted(opsets, reverse=True):
        pairs = taken_blocks(Support(open=True), opset, DTYPES_OF_BLOCKS)
        for name, dtype in sorted(pairs, key=lambda pair: DTYPES_OF_BLOCKS.index(pair[1])):
            key = block_key(name, dtype, opset)
            if key in asked:
                continue
            asked.add(key)
            for number in range(_SAMPLES):
                scope = Scope(
                    stream(0, "block", key, number),
                    opset,
                    OperatorLimits(max_dim=5),
                    Style(integral=True),
                    Support(open=True),
                )
                if plant_container(scope, name, dtype) is not None:
                    yield Question(key, f"block:{name}", finish(scope, leaves(scope), 1, {"producer": "probe"}))
