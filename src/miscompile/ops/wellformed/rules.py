"""Building blocks of the rules: shapes and elements of operands, broadcasting, axes."""

from collections.abc import Callable, Mapping, Sequence

from miscompile.ops.spec import Call, Shape
from miscompile.ops.structural import integers_of

CallRule = Callable[[Call], bool]
"""Tells whether a call keeps a rule of its operator's page; it holds where the elements that it needs are unknown."""

CallRules = Mapping[str, CallRule]
"""Rules by operator."""


def broadcasts_to(shape: Shape, goal: Shape) -> bool:
    """Tell whether `shape` broadcasts to `goal` in one direction: the result has the shape `goal`."""
    tail = goal[len(goal) - len(shape) :] if len(shape) <= len(goal) else None
    return tail is not None and all(have in (1, want) for have, want in zip(shape, tail, strict=True))


def different_axes(axes: Sequence[int], rank: int) -> bool:
    """Tell whether `axes` are in [-rank, rank) and name different axes."""
    return all(-rank <= axis < rank for axis in axes) and len({axis % rank for axis in axes}) == len(axes)


def shape_of(call: Call, index: int) -> Shape | None:
    """Shape of input `index`, None when it is absent."""
    return call.operand(index).shape if call.has(index) else None


def numbers_of(call: Call, index: int) -> tuple[int, ...] | None:
    """Elements of structural input `index`; None when it is absent or not known."""
    value = call.operand(index).value if call.has(index) else None
    return None if value is None else integers_of(value)


def scalars(*places: int) -> Callable[[Call], bool]:
    """Rule: these inputs have rank 0, where they are present."""
    return lambda call: all(shape_of(call, place) in (None, ()) for place in places)


def has_axis(default: int, *, beyond: bool = False) -> Callable[[Call], bool]:
    """Rule: attribute `axis` names an axis of the first input (`beyond`: or the place after the last one)."""

    def rule(call: Call) -> bool:
        rank, axis = call.operand(0).rank, call.integer("axis", default)
        return -rank <= axis < rank + beyond

    return rule
