"""Repairs of an invalid call: other contents of the one broken place, among which the caller searches for a valid one.

If one repair makes the call valid, then the call breaks no rule besides the one at that place.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice, permutations, product
from typing import NamedTuple

import numpy as np

from miscompile.base.dtypes import PLAIN
from miscompile.core.tensor import Array
from miscompile.graph.model import Attribute, TensorType
from miscompile.ops.spec import Shape
from miscompile.producers.disruptive.draft import DraftOperand, InvalidDraft

_MOST = 200
_MOST_ELEMENTS = 4096
_MOST_RANK = 5
_WORDS = ("NOTSET", "SAME_UPPER", "none", "linear", "nearest", "constant", "mean", "forward", "RIGHT", "default")


def near_repairs(draft: InvalidDraft, kind: str, place: str) -> Iterator[InvalidDraft]:
    """Yield calls that differ from `draft` in `place` only, and there in one size, element or entry of a list.

    `kind` is that of the constraint. At most 200, because each is checked; none for a place that is not one operand,
    attribute or result.
    """
    yield from islice(_candidates(draft, kind, place, _NEAR), _MOST)


def far_repairs(draft: InvalidDraft, kind: str, place: str) -> Iterator[InvalidDraft]:
    """Yield calls that differ from `draft` in `place` only, however much, as `near_repairs` does."""
    yield from islice(_candidates(draft, kind, place, _FAR), _MOST)


def _candidates(draft: InvalidDraft, kind: str, place: str, how: "_Proposals") -> Iterator[InvalidDraft]:
    part, _, which = place.partition(" ")
    if part == "operand":
        yield from _operands(draft, kind, tuple(map(int, which.split(","))), how)
    elif part == "attribute":
        kept = {name: value for name, value in draft.attributes.items() if name != which}
        plain = draft.attributes[which].kind in ("int", "float", "string")
        if plain == (how is _NEAR):
            yield replace(draft, attributes=kept)
        for attribute in how.attributes(draft, draft.attributes[which]):
            yield replace(draft, attributes={**kept, which: attribute})
    elif part == "result":
        number = int(which)
        for result in how.results(draft.outputs[number]):
            yield replace(draft, outputs=(*draft.outputs[:number], result, *draft.outputs[number + 1 :]))


def _operands(draft: InvalidDraft, kind: str, places: Sequence[int], how: "_Proposals") -> Iterator[InvalidDraft]:
    if kind in ("dtype", "mixed"):
        others = [part.dtype for place, part in enumerate(draft.parts) if part is not None and place not in places]
        for dtype in dict.fromkeys((*others, *PLAIN)) if how is _NEAR else ():
            with suppress(ValueError, OverflowError):  # no such text is a number, or the number is out of range
                yield _with(draft, {place: _given(draft, place).cast(dtype) for place in places})
        return
    for place in places:
        part = _given(draft, place)
        if kind in ("contents", "domain"):
            for elements in how.elements(draft, part.value.array):
                yield _with(draft, {place: part.holding(elements)})
        else:
            for shape in how.shapes(draft, place):
                if math.prod(shape) <= _MOST_ELEMENTS:
                    yield _with(draft, {place: part.sized(shape)})


def _near_shapes(draft: InvalidDraft, place: int) -> Iterator[Shape]:
    """Yield the operand's shape with one size changed, removed or inserted."""
    own, sizes = _given(draft, place).shape, _sizes(draft)
    for axis, size in product(range(len(own)), sizes):
        if own[axis] != size:
            yield (*own[:axis], size, *own[axis + 1 :])
    for axis in range(len(own)):
        yield own[:axis] + own[axis + 1 :]
    for axis, size in product(range(len(own) + 1), sizes):
        yield (*own[:axis], size, *own[axis:])


def _far_shapes(draft: InvalidDraft, place: int) -> Iterator[Shape]:
    """Yield the shapes of the other operands, then all small ones of the sizes that occur."""
    yield from (part.shape for number, part in enumerate(draft.parts) if part is not None and number != place)
    for rank in range(_MOST_RANK):
        yield (1,) * rank
    for rank in range(_MOST_RANK):
        yield from product(_sizes(draft), repeat=rank)


def _sizes(draft: InvalidDraft) -> list[int]:
    """Return the sizes of operands, and the small numbers that attributes state, because some of them are sizes."""
    found = {1, 2, *chain.from_iterable(part.shape for part in draft.parts if part is not None)}
    for attribute in draft.attributes.values():
        values = attribute.value if attribute.kind == "ints" else (attribute.value,) if attribute.kind == "int" else ()
        found.update(value for value in values if 0 < value <= 16)
    return sorted(found)


def _near_elements(draft: InvalidDraft, old: Array) -> Iterator[Array]:
    """Yield elements for a structural operand: one changed, one removed, one inserted."""
    del draft
    numbers = [np.asarray(number).astype(old.dtype) for number in (0, 1, 2, 3, -1)]
    for place, number in product(range(old.size), numbers):
        new = old.copy()
        new.flat[place] = number
        yield new
    if old.ndim == 1:
        yield from (np.delete(old, place) for place in range(old.size))
        yield from (np.append(old, number) for number in numbers)


def _far_elements(draft: InvalidDraft, old: Array) -> Iterator[Array]:
    """Yield other elements for a structural operand, then other lengths, and the shapes of operands."""
    for number in (0, 1, -1):
        yield np.full(old.shape, number).astype(old.dtype)
    if old.ndim != 1:
        return
    for part in draft.parts:
        if part is not None:
            yield np.asarray(part.shape, old.dtype)
    for length in range(2 * _MOST_RANK):
        yield np.arange(length).astype(old.dtype)
        yield np.ones(length).astype(old.dtype)
        yield np.zeros(length).astype(old.dtype)


def _near_attributes(draft: InvalidDraft, given: Attribute) -> Iterator[Attribute]:
    """Yield other numbers and words, and lists with one entry changed, removed or inserted."""
    if given.kind == "int":
        yield from (Attribute("int", value) for value in range(-1, 17))
    elif given.kind == "float":
        yield from (Attribute("float", value) for value in (1.0, 0.5, 0.0))
    elif given.kind == "string":
        yield from (Attribute("string", word) for word in (*_WORDS, given.value.swapcase()))
    elif given.kind in ("ints", "floats"):
        make, own = float if given.kind == "floats" else int, tuple(given.value)
        numbers = [make(number) for number in range(_rank(draft) + 2)]
        for place, number in product(range(len(own)), numbers):
            yield Attribute(given.kind, (*own[:place], number, *own[place + 1 :]))
        for place in range(len(own)):
            yield Attribute(given.kind, own[:place] + own[place + 1 :])
        for place, number in product(range(len(own) + 1), numbers):
            yield Attribute(given.kind, (*own[:place], number, *own[place:]))


def _far_attributes(draft: InvalidDraft, given: Attribute) -> Iterator[Attribute]:
    """Yield other lists of numbers."""
    if given.kind not in ("ints", "floats"):
        return
    make, rank = float if given.kind == "floats" else int, _rank(draft)
    for length in range(2 * rank + 2):
        for number in (0, 1, 2):
            yield Attribute(given.kind, (make(number),) * length)
        yield Attribute(given.kind, tuple(map(make, range(length))))
    for length in range(2, rank + 1):
        yield from (Attribute(given.kind, tuple(map(make, one))) for one in permutations(range(rank), length))


def _near_results(given: TensorType) -> Iterator[TensorType]:
    """Yield declared types with another dtype, or with another rank."""
    yield from (TensorType(dtype, given.shape) for dtype in PLAIN)
    yield from (TensorType(given.dtype, (None,) * rank) for rank in range(_MOST_RANK + 1))


def _far_results(given: TensorType) -> Iterator[TensorType]:
    """Yield declared types with another dtype and rank."""
    del given
    yield from (TensorType(dtype, (None,) * rank) for dtype, rank in product(PLAIN, range(_MOST_RANK + 1)))


class _Proposals(NamedTuple):
    """Proposes other contents for a place of each kind."""

    shapes: Callable[[InvalidDraft, int], Iterator[Shape]]
    elements: Callable[[InvalidDraft, Array], Iterator[Array]]
    attributes: Callable[[InvalidDraft, Attribute], Iterator[Attribute]]
    results: Callable[[TensorType], Iterator[TensorType]]


_NEAR = _Proposals(_near_shapes, _near_elements, _near_attributes, _near_results)
_FAR = _Proposals(_far_shapes, _far_elements, _far_attributes, _far_results)


def _rank(draft: InvalidDraft) -> int:
    return max((len(part.shape) for part in draft.parts if part is not None), default=0)


def _with(draft: InvalidDraft, changed: dict[int, DraftOperand]) -> InvalidDraft:
    return replace(draft, parts=tuple(changed.get(place, part) for place, part in enumerate(draft.parts)))


def _given(draft: InvalidDraft, place: int) -> DraftOperand:
    part = draft.parts[place]
    assert part is not None, f"operand {place} is absent"
    return part
