"""Conditions of unspecified behaviour of windows that move over spatial axes: pooling and transposed convolution."""

from typing import Any

import numpy as np

from miscompile.core.case import Feed
from miscompile.instances.instance import Instance
from miscompile.ops.definitions.evaluated_call import EvaluatedCall
from miscompile.ops.definitions.windows import windows
from miscompile.oracles.unspecified.operands import numbers, operand

_LARGEST = 4096
"""Windows and paddings beyond it are not laid out, because that takes memory: compilers refuse them, or nearly all of
such a window is padding."""


def pads_in_two_ways(instance: Instance, feed: Feed) -> bool:
    """An automatic padding for which the page has two formulas that differ, or one that gives a negative number."""
    given = _given(instance)
    automatic = given.text("auto_pad", "NOTSET")
    if automatic == "VALID":
        return bool(given.integer("ceil_mode", 0))
    kernel = given.integers("kernel_shape") or ()
    ones = (1,) * len(kernel)
    strides, dilations = given.integers("strides") or ones, given.integers("dilations") or ones
    rows = zip(kernel, strides, dilations, strict=False)
    return automatic.startswith("SAME") and any(stride > (size - 1) * step + 1 for size, stride, step in rows)


def meets_padding_only(instance: Instance, feed: Feed) -> bool:
    """A window without an element of the operand."""
    given, x = _given(instance), numbers(operand(instance, 0))
    spatial = () if x is None else x.shape[2:]
    ones, none = (1,) * len(spatial), (0,) * 2 * len(spatial)
    kernel, pads = given.integers("kernel_shape") or (), given.integers("pads") or none
    lists = kernel, given.integers("strides") or ones, given.integers("dilations") or ones
    if any(len(one) != len(spatial) or min(one, default=1) < 1 for one in lists) or len(pads) != 2 * len(spatial):
        return False  # no valid node
    if max(pads, default=0) > _LARGEST or any(
        step * k > _LARGEST or size * k > _LARGEST**2 for size, k, step in zip(spatial, kernel, lists[2], strict=True)
    ):
        return True
    return not all(one.inside().any(axis=1).all() for one in windows(given, spatial))


def _given(instance: Instance) -> EvaluatedCall:
    """Return the attributes of windows as a definition gets them; the kernel of a convolution is that of its weights.

    Attributes of another kind, which no valid node has, are left out.
    """
    weights, has = numbers(operand(instance, 1)), instance.parameters()
    own: dict[str, Any] = {} if weights is None else {"kernel_shape": np.asarray(weights).shape[2:]}
    for name in ("kernel_shape", "strides", "dilations", "pads"):
        found = has.get(name)
        if isinstance(found, tuple | list) and all(isinstance(one, int) for one in found):
            own[name] = tuple(found)
    own |= {name: has[name] for name in ("ceil_mode",) if isinstance(has.get(name), int)}
    own |= {name: has[name] for name in ("auto_pad",) if isinstance(has.get(name), str)}
    return EvaluatedCall((), own, instance.version, ())
