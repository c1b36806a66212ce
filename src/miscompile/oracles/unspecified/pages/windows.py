"""Conditions on windows that move over spatial dimensions."""

import math

from miscompile.oracles.unspecified.pages.node import NodeView, PageCondition


def spatial(node: NodeView) -> bool:
    """Tell whether there are spatial dimensions, none of them empty."""
    shape = node.shape(0) or ()
    return len(shape) >= 3 and 0 not in shape[2:]


def window_fits(place: int) -> tuple[str, PageCondition]:
    """Return the condition that the window of weights at `place`, or of the attribute, fits into the padded operand."""

    def holds(node: NodeView) -> bool:
        shape, weights = node.shape(0) or (), node.shape(place) if place else None
        kernel = list(weights[2:]) if weights else node.whole_list("kernel_shape")
        spatial = shape[2:]
        if node.text("auto_pad", "NOTSET") not in ("NOTSET", "VALID") or len(kernel) != len(spatial):
            return len(kernel) == len(spatial)
        pads = node.whole_list("pads") or [0] * (2 * len(spatial))
        steps = node.whole_list("dilations") or [1] * len(spatial)
        if len(pads) != 2 * len(spatial) or len(steps) != len(spatial):
            return False
        whole = [size + pads[axis] + pads[axis + len(spatial)] for axis, size in enumerate(spatial)]
        return all(
            step * (size - 1) + 1 <= room for size, step, room in zip(kernel, steps, whole, strict=True)
        ) and all(pad >= 0 for pad in pads)

    return "the window fits into the padded operand", holds


def pads_are_small(node: NodeView) -> bool:
    """Tell whether no window lies in the padding alone."""
    kernel, pads = node.whole_list("kernel_shape"), node.whole_list("pads")
    steps = node.whole_list("dilations") or [1] * len(kernel)
    if not pads or len(pads) != 2 * len(kernel) or len(steps) != len(kernel):
        return not pads
    extents = [step * (size - 1) + 1 for size, step in zip(kernel, steps, strict=True)]
    return all(pad < extent for pad, extent in zip(pads, extents * 2, strict=True))


def small_output_padding(node: NodeView) -> bool:
    """Tell whether the padding of the output is less than stride or dilation."""
    paddings = node.whole_list("output_padding")
    strides = node.whole_list("strides") or [1] * len(paddings)
    dilations = node.whole_list("dilations") or [1] * len(paddings)
    if not paddings:
        return True
    if not len(paddings) == len(strides) == len(dilations):
        return False
    rows = zip(paddings, strides, dilations, strict=True)
    return all(0 <= padding < max(stride, dilation) for padding, stride, dilation in rows)


def steps_are_positive(node: NodeView) -> bool:
    """Tell whether strides and dilations are positive."""
    return all(step >= 1 for name in ("strides", "dilations") for step in node.whole_list(name))


def scaled(place: int) -> PageCondition:
    """Return the condition that an operand, if not empty, has one element for each axis."""

    def holds(node: NodeView) -> bool:
        given, axes = node.tensor(place), node.instance.kwargs.get("axes")
        count = len(axes) if isinstance(axes, tuple | list) else len(node.shape(0) or ())
        return given is None or not given.array.size or given.shape == (count,)

    return holds


def pads_are_free(node: NodeView) -> bool:
    """Tell whether not both `pads` and an automatic padding are given."""
    return node.text("auto_pad", "NOTSET") == "NOTSET" or not any(node.whole_list("pads"))


def deformed(node: NodeView) -> bool:
    """Tell whether offsets and mask have a number for each place of the window, in each group."""
    weights, offset, mask = node.shape(1) or (), node.shape(2) or (), node.shape(4)
    places = node.whole("offset_group", 1) * math.prod(weights[2:])
    if len(offset) != len(weights) or offset[1] != places * (len(weights) - 2):
        return False
    return mask is None or mask == (offset[0], places, *offset[2:])
