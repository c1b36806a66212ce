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
    x, (pads, value) = given.operand(0), _settings(given)
    if given.text("mode", "constant") != "constant" or min(pads, default=0) >= 0:
        return None
    sides = _by_axis(given, pads, x.ndim)
    cuts = [(max(-before, 0), max(-after, 0)) for before, after in sides]
    if any(before + after > size for (before, after), size in zip(cuts, x.shape, strict=True)):
        return None
    kept = x[tuple(slice(before, size - after) for (before, after), size in zip(cuts, x.shape, strict=True))]
    return (np.pad(kept, [(max(before, 0), max(after, 0)) for before, after in sides], constant_values=value),)


def _settings(given: EvaluatedCall) -> tuple[list[int], Any]:
    """Return the pads, and the element to pad with."""
    if given.opset < _PADS_ARE_AN_OPERAND:
        return list(given.integers("pads") or ()), given.real("value", 0.0)
    value, nothing = given.optional(2), "" if given.operand(0).dtype.kind == "O" else 0
    return given.operand(1).ravel().tolist(), nothing if value is None else value.reshape(-1)[0]


def _by_axis(given: EvaluatedCall, pads: list[int], rank: int) -> list[tuple[int, int]]:
    """Return the pads before and behind each axis. Raises IndexError for an axis that the data lack."""
    axes = given.optional(3)
    count, sides = len(pads) // 2, [(0, 0)] * rank
    for place, axis in enumerate(range(count) if axes is None else axes.ravel().tolist()):
        sides[axis] = (int(pads[place]), int(pads[count + place]))
    return sides
