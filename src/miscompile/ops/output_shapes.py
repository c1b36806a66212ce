"""Shapes of the outputs, operator by operator, for those that the generator uses most.

onnx's inference knows them all, but costs more than all other steps of adding a call together. A rule returns one shape
for each output, or None where it cannot tell: it needs unknown elements of an operand, or the call breaks the
operator's page. The caller then runs inference. The conformance kit compares every rule with inference.

Source of each rule: the operator's page of the ONNX documentation.
"""

import math
from collections.abc import Sequence

from miscompile.ops.shapes import broadcast
from miscompile.ops.spatial import Window, window_of
from miscompile.ops.spec import Call, OutputShapes, Shape
from miscompile.ops.structural import numbers

PromisedShapes = tuple[Shape, ...] | None


def like_first(call: Call) -> PromisedShapes:
    """Every output has the shape of the first operand."""
    return (call.operand(0).shape,) * call.outputs


def only_like_first(call: Call) -> PromisedShapes:
    """The one output has the shape of the first operand; statistics as further outputs are left to inference."""
    return (call.operand(0).shape,) if call.outputs == 1 else None


def like_second(call: Call) -> PromisedShapes:
    """GatherElements: an element for each index."""
    return (call.operand(1).shape,)


def scalar(call: Call) -> PromisedShapes:
    """Size: one number."""
    return ((),)


def _places(axes: Sequence[int] | None, rank: int) -> tuple[int, ...] | None:
    """Return `axes` counted from the front; None when one lies outside or is named twice."""
    if axes is None:
        return None
    for axis in axes:
        if not -rank <= axis < rank:
            return None
    found = tuple([axis + rank if axis < 0 else axis for axis in axes])
    return found if len(set(found)) == len(found) else None


def _axis(call: Call, default: int, rank: int) -> int | None:
    axis = call.integer("axis", default)
    if not -rank <= axis < rank:
        return None
    return axis + rank if axis < 0 else axis


def transpose(call: Call) -> PromisedShapes:
    """Sizes in the order of `perm`, else reversed."""
    shape, perm = call.operand(0).shape, call.attributes.get("perm")
    if perm is None:
        return (shape[::-1],)
    if sorted(perm.value) != list(range(len(shape))):
        return None
    return (tuple([shape[axis] for axis in perm.value]),)


def reshape(call: Call) -> PromisedShapes:
    """The written sizes; 0 copies a size, and -1 is what is left."""
    shape, written = call.operand(0).shape, numbers(call, 1)
    if written is None:
        return None
    sizes = list(written)
    if 0 in sizes and not call.integer("allowzero"):
        if any(size == 0 and place >= len(shape) for place, size in enumerate(sizes)):
            return None
        sizes = [size or shape[place] for place, size in enumerate(sizes)]
    total = math.prod(shape)
    if -1 in sizes:
        place = sizes.index(-1)
        sizes[place] = 1
        rest = math.prod(sizes)
        if rest <= 0 or total % rest:
            return None
        sizes[place] = total // rest
    return (tuple(sizes),) if min(sizes, default=0) >= 0 and math.prod(sizes) == total else None


def flatten(call: Call) -> PromisedShapes:
    """A matrix: the axes before `axis`, and those from there on."""
    shape = call.operand(0).shape
    rank, axis = len(shape), call.integer("axis", 1)
    if not -rank <= axis <= rank:
        return None
    at = axis + rank if axis < 0 else axis
    return ((math.prod(shape[:at]), math.prod(shape[at:])),)


def squeeze(call: Call) -> PromisedShapes:
    """Without the named axes, or without all of size one."""
    shape = call.operand(0).shape
    if not call.has(1) and "axes" not in call.attributes:
        return (tuple([size for size in shape if size != 1]),)
    axes = _places(numbers(call, 1) if call.has(1) else call.integers("axes"), len(shape))
    if axes is None or any(shape[axis] != 1 for axis in axes):
        return None
    return (tuple([size for axis, size in enumerate(shape) if axis not in axes]),)


def unsqueeze(call: Call) -> PromisedShapes:
    """With axes of size one, counted in the result."""
    shape = call.operand(0).shape
    given = numbers(call, 1) if call.has(1) else call.integers("axes")
    axes = None if given is None else _places(given, len(shape) + len(given))
    if axes is None:
        return None
    rest = iter(shape)
    return (tuple([1 if axis in axes else next(rest) for axis in range(len(shape) + len(axes))]),)


def expand(call: Call) -> PromisedShapes:
    """The broadcast of the data's shape and the written shape."""
    sizes = numbers(call, 1)
    if sizes is None or min(sizes, default=0) < 0:
        return None
    return _broadcast(call.operand(0).shape, sizes)


def tile(call: Call) -> PromisedShapes:
    """Each size times its count."""
    shape, counts = call.operand(0).shape, numbers(call, 1)
    if counts is None or len(counts) != len(shape) or min(counts, default=0) < 0:
        return None
    return (tuple([size * count for size, count in zip(shape, counts, strict=True)]),)


def concat(call: Call) -> PromisedShapes:
    """The first operand's shape, its size on `axis` summed over the operands."""
    first = call.operand(0).shape
    rank = len(first)
    if "axis" not in call.attributes or (at := _axis(call, 0, rank)) is None:
        return None
    before, after, total = first[:at], first[at + 1 :], 0
    for place in range(len(call.inputs)):
        shape = call.operand(place).shape
        if len(shape) != rank or shape[:at] != before or shape[at + 1 :] != after:
            return None
        total += shape[at]
    return ((*before, total, *after),)


def split(call: Call) -> PromisedShapes:
    """The written sizes on `axis`, or as equal ones as there are."""
    shape = call.operand(0).shape
    at = _axis(call, 0, len(shape))
    if at is None or "split" in call.attributes:
        return None
    size, count = shape[at], call.outputs
    if call.has(1):
        parts = numbers(call, 1)
    elif "num_outputs" in call.attributes:
        chunk = -(-size // count)
        parts = (*[chunk] * (count - 1), size - (count - 1) * chunk)
        parts = parts if call.integer("num_outputs") == count else None
    else:
        parts = (size // count,) * count
    if parts is None or len(parts) != count or min(parts) < 0 or sum(parts) != size:
        return None
    before, after = shape[:at], shape[at + 1 :]
    return tuple([(*before, part, *after) for part in parts])


def depth_to_space(call: Call) -> PromisedShapes:
    """Depth divided by the block's area, height and width times its side."""
    shape, block = call.operand(0).shape, call.integer("blocksize")
    if len(shape) != 4 or block < 1 or shape[1] % block**2:
        return None
    return ((shape[0], shape[1] // block**2, shape[2] * block, shape[3] * block),)


def space_to_depth(call: Call) -> PromisedShapes:
    """Depth times the block's area, height and width divided by its side."""
    shape, block = call.operand(0).shape, call.integer("blocksize")
    if len(shape) != 4 or block < 1 or shape[2] % block or shape[3] % block:
        return None
    return ((shape[0], shape[1] * block**2, shape[2] // block, shape[3] // block),)


def slices(call: Call) -> PromisedShapes:
    """The sizes that starts, ends and steps select. Slice clamps as Python does, except for a start before the axis."""
    shape, count = call.operand(0).shape, len(call.inputs)
    starts, ends = numbers(call, 1), numbers(call, 2)
    axes = numbers(call, 3) if call.has(3) else range(len(starts or ()))
    steps = numbers(call, 4) if count > 4 and call.has(4) else (1,) * len(starts or ())
    places = _places(axes, len(shape))
    if starts is None or ends is None or steps is None or places is None:
        return None
    if not len(starts) == len(ends) == len(steps) == len(places):
        return None
    sizes = list(shape)
    for start, end, step, axis in zip(starts, ends, steps, places, strict=True):
        size = shape[axis]
        if step == 0 or (step < 0 and (start < -size or size == 0)):
            return None
        sizes[axis] = len(range(*slice(start, end, step).indices(size)))
    return (tuple(sizes),)


def pad(call: Call) -> PromisedShapes:
    """Sizes with the pads on either side, which cut where they are negative."""
    shape, pads = call.operand(0).shape, numbers(call, 1)
    rank = len(shape)
    axes = _places(numbers(call, 3), rank) if call.has(3) else tuple(range(rank))
    if pads is None or axes is None or len(pads) != 2 * len(axes):
        return None
    sizes = list(shape)
    for place, axis in enumerate(axes):
        sizes[axis] += pads[place] + pads[place + len(axes)]
    return (tuple(sizes),) if min(sizes, default=0) >= 0 else None


def center_crop_pad(call: Call) -> PromisedShapes:
    """The written sizes on their axes."""
    shape, written = call.operand(0).shape, numbers(call, 1)
    rank = len(shape)
    axes = _places(call.integers("axes", range(rank)), rank)
    if written is None or axes is None or len(written) != len(axes) or min(written, default=0) < 0:
        return None
    sizes = list(shape)
    for axis, size in zip(axes, written, strict=True):
        sizes[axis] = size
    return (tuple(sizes),)


def written_shape(call: Call) -> PromisedShapes:
    """ConstantOfShape: the elements of the operand."""
    sizes = numbers(call, 0)
    return (sizes,) if sizes is not None and min(sizes, default=0) >= 0 else None


def gather(call: Call) -> PromisedShapes:
    """The indices' shape in place of the axis."""
    shape = call.operand(0).shape
    at = _axis(call, 0, len(shape))
    return None if at is None else (shape[:at] + call.operand(1).shape + shape[at + 1 :],)


def gather_nd(call: Call) -> PromisedShapes:
    """The indices' shape, its last axis replaced by the axes of the data that an index leaves."""
    shape, places, batch = call.operand(0).shape, call.operand(1).shape, call.integer("batch_dims")
    if not places or not 0 <= batch < min(len(shape), len(places)):
        return None
    taken = batch + places[-1]
    return (places[:-1] + shape[taken:],) if batch < taken <= len(shape) else None


def reduced(call: Call) -> PromisedShapes:
    """Reductions: the axes gone, or of size one with `keepdims`."""
    shape = call.operand(0).shape
    given = numbers(call, 1) if call.has(1) else call.integers("axes")
    axes = _places(given, len(shape))
    if axes is None:
        return None
    if not axes:
        if call.integer("noop_with_empty_axes"):
            return (shape,)
        axes = tuple(range(len(shape)))
    return _without(call, shape, axes)


def ranked(call: Call) -> PromisedShapes:
    """ArgMax, ArgMin: the axis gone, or of size one with `keepdims`."""
    shape = call.operand(0).shape
    at = _axis(call, 0, len(shape))
    return None if at is None else _without(call, shape, (at,))


def _without(call: Call, shape: Shape, axes: Sequence[int]) -> PromisedShapes:
    if call.integer("keepdims", 1):
        return (tuple([1 if axis in axes else size for axis, size in enumerate(shape)]),)
    return (tuple([size for axis, size in enumerate(shape) if axis not in axes]),)


def top_k(call: Call) -> PromisedShapes:
    """Values and indices: K elements on the axis."""
    shape, count = call.operand(0).shape, numbers(call, 1)
    at = _axis(call, -1, len(shape))
    if at is None or count is None or len(count) != 1 or not 0 <= count[0] <= shape[at]:
        return None
    return ((*shape[:at], count[0], *shape[at + 1 :]),) * call.outputs


def shape_of_shape(call: Call) -> PromisedShapes:
    """Shape: one number for each axis from `start` to `end`."""
    rank = call.operand(0).rank
    return ((len(range(*slice(call.integer("start"), call.integer("end", rank)).indices(rank))),),)


def product(left: int = 0, right: int = 1) -> OutputShapes:
    """Return the rule of a matrix product of inputs `left` and `right`, as numpy defines it."""

    def rule(call: Call) -> PromisedShapes:
        first, second = call.operand(left).shape, call.operand(right).shape
        if not first or not second or first[-1] != second[-2 if len(second) > 1 else -1]:
            return None
        found = _broadcast(first[:-2], second[:-2])
        return None if found is None else ((*found[0], *first[-2:-1], *(second[-1:] if len(second) > 1 else ())),)

    return rule


def gemm(call: Call) -> PromisedShapes:
    """A matrix product, either side transposed or not."""
    left, right = call.operand(0).shape, call.operand(1).shape
    if len(left) != 2 or len(right) != 2:
        return None
    rows, inner = left[::-1] if call.integer("transA") else left
    same, columns = right[::-1] if call.integer("transB") else right
    return ((rows, columns),) if inner == same else None


def _broadcast(first: Shape, second: Shape) -> PromisedShapes:
    try:
        return (broadcast(first, second),)
    except ValueError:
        return None


def _windowed(window: Window, shape: Shape) -> Shape | None:
    rank = len(shape) - 2
    if rank < 1 or not (window.rank == len(window.strides) == len(window.dilations) == rank):
        return None
    if len(window.pads) != 2 * rank or min(*window.kernel, *window.strides, *window.dilations) < 1:
        return None
    return window.output(shape[2:]) if window.fits(shape[2:]) else None


def convolution(filters: int) -> OutputShapes:
    """Return the rule of a convolution whose filters are input `filters`."""

    def rule(call: Call) -> PromisedShapes:
        shape, weights = call.operand(0).shape, call.operand(filters).shape
        if len(weights) != len(shape) or call.integers("kernel_shape", weights[2:]) != weights[2:]:
            return None
        found = _windowed(window_of(call, weights[2:]), shape)
        return None if found is None else ((shape[0], weights[0], *found),)

    return rule


def pooled(call: Call) -> PromisedShapes:
    """Pooling: batch and channels stay."""
    shape = call.operand(0).shape
    found = _windowed(window_of(call), shape) if "kernel_shape" in call.attributes else None
    return None if found is None else ((*shape[:2], *found),) * call.outputs


def pooled_whole(call: Call) -> PromisedShapes:
    """Global pooling: every spatial axis becomes one."""
    shape = call.operand(0).shape
    return ((*shape[:2], *(1,) * (len(shape) - 2)),) if len(shape) > 2 else None
