"""Building blocks of the rules that operators' pages state and that onnx does not enforce (`OpSpec.well_formed`).

They concern shapes and elements of operands, broadcasting, axes and windows. Source of each rule: the operator's page
of the ONNX documentation. A rule holds where it would need elements of an operand that are not known.
"""

from collections.abc import Callable, Sequence

from miscompile.ops.spatial import window_of
from miscompile.ops.spec import Call, Operand, Shape
from miscompile.ops.structural import integers_of


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


def listed_axes(call: Call) -> bool:
    """Reductions, Squeeze: the axes, an attribute or an input, are different axes of the data."""
    axes = call.integers("axes") if "axes" in call.attributes else numbers_of(call, 1)
    return axes is None or different_axes(axes, call.operand(0).rank)


def lines(zero: Operand | None, matrix: Shape, axis: int) -> bool:
    """A zero point or scale of a matrix: a scalar, or one number for each row (axis -2) or column (axis -1)."""
    if zero is None or not zero.shape:
        return True
    if len(matrix) < 2:
        return False
    other = -3 - axis
    whole = tuple(1 if place - len(matrix) == other else size for place, size in enumerate(matrix))
    return zero.shape == whole or (len(matrix) == 2 and zero.shape == (matrix[axis],))


def fits_windows(call: Call, x: Shape, kernel: Shape | None = None, *, over_result: bool = False) -> bool:
    """A window over the axes of `x` from 2 on, with `kernel` where the filters say it, that fits over them.

    Pads are not negative. Windows that slide over the result (`over_result`) always fit.
    """
    window, rank = window_of(call, kernel), len(x) - 2
    lengths = (window.rank, len(window.strides), len(window.dilations), len(window.pads) - rank)
    if rank < 1 or any(length != rank for length in lengths) or (kernel is not None and window.kernel != kernel):
        return False
    if window.auto_pad != "NOTSET" and any(window.pads):
        return False
    if min((*window.kernel, *window.strides, *window.dilations)) < 1 or min(window.pads) < 0:
        return False
    return over_result or window.fits(x[2:])


def fits_filters(call: Call, x: Shape, filters: Shape, bias: Shape | None) -> bool:
    """Filters that fit over `x`, of which each takes the channels of its group, and a bias for each filter."""
    group = call.integer("group", 1)
    if len(filters) != len(x) or group < 1 or not fits_windows(call, x, filters[2:]):
        return False
    return x[1] == filters[1] * group and filters[0] % group == 0 and bias in (None, filters[:1])


def stacks(call: Call) -> tuple[Shape, ...]:
    """The shapes that a product of stacks of matrices broadcasts: those of all operands without the last two axes."""
    return tuple(operand.shape[:-2] for operand in call.inputs if operand is not None)
