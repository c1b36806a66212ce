"""The definition of Pad with negative pads, which remove elements.

https://onnx.ai/onnx/operators/onnx__Pad.html
"""

from typing import Any

import numpy as np

from miscompile.core.tensor import Array
from miscompile.ops.definitions.evaluated_call import EvaluatedCall

_PADS_ARE_AN_OPERAND = 11
"""The opset since which pads and value are operands."""


def pad(given: EvaluatedCall) -> tuple[Array] | None:
    """Pad with a constant, where some pads are negative: these cut elements off, the others add the constant.

    onnx's evaluator refuses negative pads. Other modes are left to it, because their page does not say whether they
    repeat elements that are cut off, and so are pads that cut off more than there is.
    """
    x, pads = given.operand(0), _pads(given)
    sides = _by_axis(given, pads, x.ndim)
    if given.text("mode", "constant") != "constant" or min(pads, default=0) >= 0 or sides is None:
        return None
    cuts = [(max(-before, 0), max(-after, 0)) for before, after in sides]
    if any(before + after > size for (before, after), size in zip(cuts, x.shape, strict=True)):
        return None
    kept = x[tuple(slice(before, size - after) for (before, after), size in zip(cuts, x.shape, strict=True))]
    widths = [(max(before, 0), max(after, 0)) for before, after in sides]
    return (np.pad(kept.astype(object) if _is_text(x) else kept, widths, constant_values=_value(given)),)


def _is_text(x: Array) -> bool:
    return x.dtype.kind in "OUT"


def _pads(given: EvaluatedCall) -> list[int]:
    if given.opset < _PADS_ARE_AN_OPERAND:
        return list(given.integers("pads") or ())
    return [int(pad) for pad in given.operand(1).ravel()]


def _value(given: EvaluatedCall) -> Any:  # noqa: ANN401 - an element of any type
    """Return the element to pad with."""
    if given.opset < _PADS_ARE_AN_OPERAND:
        return given.real("value", 0.0)
    value = given.optional(2)
    if value is not None and value.size:
        return value.reshape(-1)[0]
    return "" if _is_text(given.operand(0)) else 0


def _by_axis(given: EvaluatedCall, pads: list[int], rank: int) -> list[tuple[int, int]] | None:
    """Return the pads before and behind each axis; None if they do not fit the axes, which is no valid node."""
    axes = given.optional(3)
    places = list(range(rank)) if axes is None else [int(axis) + (rank if axis < 0 else 0) for axis in axes.ravel()]
    if len(pads) != 2 * len(places) or len(set(places)) < len(places) or not set(places) <= set(range(rank)):
        return None
    given_to = dict(zip(places, zip(pads[: len(places)], pads[len(places) :], strict=True), strict=True))
    return [given_to.get(axis, (0, 0)) for axis in range(rank)]
