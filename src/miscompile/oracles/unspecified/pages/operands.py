"""Conditions on shapes, numbers and attributes that many pages share; operands are counted from 0."""

import math
from collections.abc import Iterator

from miscompile.oracles.unspecified.pages.node import NodeView, PageCondition


def ranks(**ranks: int) -> Iterator[tuple[str, PageCondition]]:
    """Yield a condition for each operand, given as `p2=1` for rank 1 of the operand at place 2."""
    for word, rank in ranks.items():
        place = int(word[1:])

        def holds(node: NodeView, place: int = place, rank: int = rank) -> bool:
            shape = node.shape(place)
            return shape is None or len(shape) == rank

        yield f"operand {place} has rank {rank}", holds


def channels(place: int) -> tuple[str, PageCondition]:
    """Return the condition that an operand has one element for each channel."""

    def holds(node: NodeView) -> bool:
        shape, of = node.shape(place), node.shape(0)
        return shape is None or (of is not None and len(of) > 1 and shape == (of[1],))

    return f"operand {place} has one element for each channel", holds


def outputs(weights: int, place: int, *, transposed: bool = False) -> tuple[str, PageCondition]:
    """Return the condition that a bias has one element for each channel of the result."""

    def holds(node: NodeView) -> bool:
        shape, of = node.shape(place), node.shape(weights)
        if shape is None or of is None:
            return True
        if not of:
            return False
        count = of[1] * node.whole("group", 1) if transposed and len(of) > 1 else of[0]
        return shape == (count,)

    return f"operand {place} has one element for each channel of the result", holds


def at_least(place: int, least: float, most: float = math.inf) -> tuple[str, PageCondition]:
    """Return the condition that the elements of an operand are within limits."""
    said = f"at least {least:g}" if most == math.inf else f"between {least:g} and {most:g}"
    return (
        f"the elements of operand {place} are {said}",
        lambda node: all(least <= item <= most for item in node.numbers(place)),
    )


def positive(*places: int) -> Iterator[tuple[str, PageCondition]]:
    """Yield for each operand the condition that its elements are positive."""
    for place in places:

        def holds(node: NodeView, place: int = place) -> bool:
            return all(item > 0 for item in node.numbers(place))

        yield f"the elements of operand {place} are positive", holds


def same_shape(one: int, other: int) -> tuple[str, PageCondition]:
    """Return the condition that two operands, if given, have the same shape."""

    def holds(node: NodeView) -> bool:
        first, second = node.shape(one), node.shape(other)
        return first is None or second is None or first == second

    return f"operands {one} and {other} have the same shape", holds


def scalars(*places: int) -> Iterator[tuple[str, PageCondition]]:
    """Yield for each operand the condition that it has one element."""
    for place in places:

        def holds(node: NodeView, place: int = place) -> bool:
            return node.shape(place) in (None, (), (1,))

        yield f"operand {place} is a scalar or has one element", holds


def along(place: int, of: int, axis: int) -> tuple[str, PageCondition]:
    """Return the condition that an operand is a scalar, or has the size of the operand `of` along `axis`."""

    def holds(node: NodeView) -> bool:
        shape, other = node.shape(place), node.shape(of)
        if shape is None or other is None:
            return True
        return shape in ((), (1,)) or (-len(other) <= axis < len(other) and shape == (other[axis],))

    return f"operand {place} is a scalar, or one element for each along axis {axis} of operand {of}", holds


def lists_of_one_length(one: str, other: str) -> tuple[str, PageCondition]:
    """Return the condition that two attributes, if given, have the same length."""

    def holds(node: NodeView) -> bool:
        first, second = node.instance.kwargs.get(one), node.instance.kwargs.get(other)
        return not isinstance(first, tuple | list) or not isinstance(second, tuple | list) or len(first) == len(second)

    return f"{one} and {other} have the same length", holds


def plain_for_vectors(*pairs: tuple[int, int]) -> Iterator[tuple[str, PageCondition]]:
    """Yield for each pair the condition that an operand is a scalar if the other one is a vector."""
    for place, of in pairs:

        def holds(node: NodeView, place: int = place, of: int = of) -> bool:
            return len(node.shape(of) or ()) != 1 or not node.shape(place)

        yield f"operand {place} is a scalar, because operand {of} is a vector", holds


def low(name: str, least: int) -> tuple[str, PageCondition]:
    """Return the condition that an integer attribute is not below a limit, which is also its default."""
    return f"{name} is at least {least}", lambda node: node.whole(name, least) >= least


def same_lengths(*places: int) -> tuple[str, PageCondition]:
    """Return the condition that operands, if given, have the same shape."""

    def holds(node: NodeView) -> bool:
        return len({shape for shape in map(node.shape, places) if shape is not None}) <= 1

    return f"operands {', '.join(map(str, places))} have the same length", holds


def are_finite(*places: int) -> PageCondition:
    """Return the condition that the elements of operands are finite."""
    return lambda node: all(math.isfinite(item) for place in places for item in node.numbers(place))


def finite_attribute(name: str) -> tuple[str, PageCondition]:
    """Return the condition that the attribute is no infinity, and not NaN, if it is given."""
    return f"{name} is finite", lambda node: math.isfinite(node.number(name, 0.0))


def alike(node: NodeView) -> bool:
    """Tell whether the operands have one shape, where the version of a variadic operator does not broadcast."""
    shapes = {node.shape(place) for place in range(len(node.instance.inputs))}
    return node.instance.version >= 8 or len(shapes) == 1


def has_axes(node: NodeView) -> bool:
    """Tell whether `axes` is left out or names some."""
    return node.instance.kwargs.get("axes") not in ((), [])


def one_way(place: int, of: int = 0) -> tuple[str, PageCondition]:
    """Return the condition that an operand broadcasts to another one, whose shape stays as it is."""

    def holds(node: NodeView) -> bool:
        shape, other = node.shape(place), node.shape(of)
        if shape is None or other is None:
            return True
        pairs = zip(reversed(shape), reversed(other), strict=False)
        return len(shape) <= len(other) and all(one in (1, size) for one, size in pairs)

    return f"operand {place} broadcasts to the shape of operand {of}", holds


def length_of_rank(place: int, of: int = 0) -> tuple[str, PageCondition]:
    """Return the condition that an operand has one element for each dimension of another one."""

    def holds(node: NodeView) -> bool:
        shape, other = node.shape(place), node.shape(of)
        return shape is None or other is None or shape == (len(other),)

    return f"operand {place} has one element for each dimension of operand {of}", holds


def axis_within(default: int) -> tuple[str, PageCondition]:
    """Return the condition that `axis` names a dimension of the first operand."""

    def holds(node: NodeView) -> bool:
        shape = node.shape(0)
        return shape is None or -len(shape) <= node.whole("axis", default) < len(shape)

    return "axis is within the rank", holds


def for_matrices(place: int, of: int, axis: int) -> tuple[str, PageCondition]:
    """Return the condition that an operand has one number, or one for each row (axis -2) or column (-1) of matrices.

    For one matrix it is a vector. For several, it has their shape with 1 on the other axis.
    """

    def holds(node: NodeView) -> bool:
        shape, other = node.shape(place), node.shape(of)
        if shape is None or other is None or shape in ((), (1,)):
            return True
        if len(other) < 3:
            return len(other) == 2 and shape == (other[axis],)
        whole = list(other)
        whole[-3 - axis] = 1
        return shape == tuple(whole)

    return f"operand {place} has one number for each place along axis {axis} of the matrices of operand {of}", holds
