"""Conditions on scales and zero points."""

from miscompile.base.dtypes import DTYPES
from miscompile.oracles.unspecified.pages.node import NodeView, PageCondition

_PRECISIONS = (0, 1, 10, 16)
"""Values of `precision`: none, and the types that scales have (float32, float16, bfloat16)."""


def granular(node: NodeView) -> bool:
    """Tell whether the scale has the shape that its granularity says: one number, one for each place, or blocks."""
    shape, scale = node.shape(0), node.shape(1)
    if shape is None or scale is None or scale in ((), (1,)):
        return not node.whole("block_size", 0)
    axis = node.whole("axis", 1)
    if node.instance.version < 13:
        return False
    if len(shape) == 1:
        axis = 0
    if not -len(shape) <= axis < len(shape):
        return False
    if not node.whole("block_size", 0):
        return scale == (shape[axis],)
    return _blocked(shape, scale, axis % len(shape), node.whole("block_size", 0))


def _blocked(shape: tuple[int, ...], scale: tuple[int, ...], axis: int, block: int) -> bool:
    if block < 0 or len(scale) != len(shape):
        return False
    expected = tuple(-(-size // block) if place == axis else size for place, size in enumerate(shape))
    return scale == expected


def like_scale(scale: int, zero: int) -> tuple[str, PageCondition]:
    """Return the condition that a zero point has the shape of its scale.

    onnx's own tests join a scalar and one element, so this does too.
    """

    def holds(node: NodeView) -> bool:
        first, second = node.shape(scale), node.shape(zero)
        one = ((), (1,))
        return first is None or second is None or first == second or (first in one and second in one)

    return f"operands {scale} and {zero} have the same shape", holds


def has_no_zero_point(place: int, of: int) -> tuple[str, PageCondition]:
    """Return the condition that a zero point is 0 where the quantised type has none: floats, and int32."""

    def holds(node: NodeView) -> bool:
        given, quantised = node.tensor(place), node.tensor(of)
        if given is None or quantised is None:
            return True
        plain = DTYPES[given.dtype].kind == "float" or given.dtype == "int32"
        return not plain or not any(node.numbers(place))

    return f"operand {place}, a zero point of floats or of int32, is 0", holds


def is_a_precision(node: NodeView) -> bool:
    """Tell whether `precision` names a type that a scale can have."""
    return node.whole("precision", 0) in _PRECISIONS
