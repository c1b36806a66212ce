"""Operators that slice, pad or reverse a tensor, or place its blocks on an image.

Sources: the operator pages of the ONNX documentation.
"""

import math
import random
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from miscompile.base.dtypes import NUMBERS, PLAIN
from miscompile.graph.attributes import attributes
from miscompile.graph.model import Node, TensorType
from miscompile.ops import output_shapes as rules
from miscompile.ops.facts import Bounds, Exactness
from miscompile.ops.page_rules import different_axes, numbers_of, scalars, shape_of
from miscompile.ops.spec import BoundsOf, Call, Operand, OpSpec, RunOperands, Sampler, Shape, ShapeRule, Site, always
from miscompile.ops.special import IEEE
from miscompile.ops.structural import (
    accumulated,
    carried,
    draw_axes,
    hull,
    index_type,
    kept,
    numbers,
    scalar,
    signed,
    vector,
    with_zero,
)

_ENDS = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}


def _interval(rng: random.Random, size: int, step: int, dtype: str) -> tuple[int, int]:
    """Draw start and end along an axis of `size`: counted from either side, beyond the edge, or the type's end."""
    lowest, highest = _ENDS[dtype]
    if step > 0:
        start, end = rng.randint(-size - 1, max(0, size - 1)), rng.randint(-size, size + 2)
        return start if rng.random() < 0.8 else 0, end if rng.random() < 0.7 else highest
    start, end = rng.randint(-size, size + 1), rng.randint(-size - 2, max(0, size - 1))
    return start if rng.random() < 0.7 else highest, end if rng.random() < 0.7 else lowest


def _cut(site: Site, size: int, step: int, dtype: str) -> tuple[int, int]:
    """Draw start and end that keep at least one element, except for the share of empty axes that the limits allow."""
    empty = site.rng.random() < site.limits.zero_size
    for _ in range(5):
        start, end = _interval(site.rng, size, step, dtype)
        if empty or len(range(*slice(start, end, step).indices(size))):
            return start, end
    return (0, _ENDS[dtype][1]) if step > 0 else (_ENDS[dtype][1], _ENDS[dtype][0])


def _slice(site: Site) -> Call:
    x = site.operand(ranks=(1, site.limits.max_rank))
    rng = site.rng
    dtype = index_type(rng)
    every = rng.random() < 0.25
    axes = list(range(x.rank)) if every else draw_axes(rng, x.rank)
    single = rng.random() < 0.35
    steps = [1 if single or x.shape[axis] == 0 else rng.choice((1, 1, 2, 3, -1, -1, -2)) for axis in axes]
    cuts = [_cut(site, x.shape[axis], step, dtype) for axis, step in zip(axes, steps, strict=True)]
    inputs: list[Operand | None] = [
        x,
        vector(site, [a for a, _ in cuts], dtype),
        vector(site, [b for _, b in cuts], dtype),
    ]
    inputs.append(None if every else vector(site, [signed(rng, axis, x.rank) for axis in axes], dtype))
    if not (single and rng.random() < 0.7):
        inputs.append(vector(site, steps, dtype))
    elif every:
        inputs.pop()
    return Call("Slice", tuple(inputs))


def _pad_modes(opset: int) -> tuple[str | None, ...]:
    modes = (None, "constant", "constant", "reflect", "edge")
    return (*modes, "wrap") if opset >= 19 else modes


def _side(site: Site, mode: str, size: int) -> tuple[int, int]:
    """Draw the pads before and after an axis of `size` that `_pad_holds` accepts."""
    rng = site.rng
    most = {"reflect": size - 1, "wrap": size, "edge": 3 if size else 0}.get(mode, 3)
    before, after = (rng.randint(0, max(0, min(3, most))) for _ in range(2))
    if mode in ("constant", "edge") and size > 1 and rng.random() < 0.2:
        cut = -rng.randint(1, size - 1)
        return (cut, after) if rng.random() < 0.5 else (before, cut)
    return before, after


def _resized(shape: Shape, axis: int, size: int) -> Shape:
    return (*shape[:axis], size, *shape[axis + 1 :])


def _pad(site: Site) -> Call:
    x = site.operand(ranks=(1, site.limits.max_rank))
    rng = site.rng
    mode = rng.choice(_pad_modes(site.opset))
    partial = site.opset >= 18 and rng.random() < 0.5
    axes = draw_axes(rng, x.rank) if partial else list(range(x.rank))
    sizes, sides = x.shape, []
    for axis in axes:
        before, after = _side(site, mode or "constant", x.shape[axis])
        grown = _resized(sizes, axis, x.shape[axis] + before + after)
        fits = math.prod(grown) <= site.limits.max_elements
        sides.append((before, after) if fits else (0, 0))
        sizes = grown if fits else sizes
    inputs: list[Operand | None] = [x, vector(site, [a for a, _ in sides] + [b for _, b in sides])]
    filled = mode in (None, "constant") and rng.random() < 0.6
    if filled:
        inputs.append(site.weight((), x.dtype))
    if partial:
        written = vector(site, [signed(rng, axis, x.rank) for axis in axes])
        inputs += [written] if filled else [None, written]
    return Call("Pad", tuple(inputs), attributes({"mode": mode}))


def _pad_bounds(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    if call.text("mode", "constant") != "constant":
        return (kept(call.facts()),)
    if call.has(2):
        return (hull((call.facts(0), call.facts(2))),)
    return (with_zero(kept(call.facts())),)


def _pad_holds(call: Call) -> bool:
    """Pads known; no element cropped twice; reflection shorter than its axis, wrapped and copied axes not empty.

    Negative pads are excluded for reflect and wrap, because the specification leaves open whether cropping comes first.
    """
    x, pads = call.operand(0), numbers(call, 1)
    axes = numbers(call, 3) if call.has(3) else tuple(range(x.rank))
    if pads is None or axes is None:
        return False
    mode = call.text("mode", "constant")
    for place, axis in enumerate(axes):
        size, before, after = x.shape[axis], pads[place], pads[place + len(axes)]
        if min(before, 0) + min(after, 0) + size < (mode == "edge" and max(before, after) > 0):
            return False
        most = {"reflect": max(0, size - 1), "wrap": size}.get(mode)
        if most is not None and (min(before, after) < 0 or max(before, after) > most):
            return False
    return True


def _keeps_what_it_crops(node: Node, value: RunOperands) -> bool:
    """No axis is cropped to less than nothing, nor an element that a positive pad of the other side has added."""
    x, pads, axes = value(0), value(1), value(3)
    if x is None or pads is None or (axes is None and len(node.inputs) > 3 and node.inputs[3]):
        return True
    places = list(range(len(x.shape))) if axes is None else axes.array.tolist()
    if pads.array.size != 2 * len(places) or not different_axes(places, len(x.shape)):
        return False
    cut = np.minimum(pads.array.reshape(2, -1), 0).sum(axis=0).tolist()
    return all(x.shape[axis] + less >= 0 for axis, less in zip(places, cut, strict=True))


def _center_crop_pad(site: Site) -> Call:
    """The shape is int64: the function that defines the operator in onnx is ill-typed for int32."""
    x = site.operand(ranks=(1, site.limits.max_rank))
    rng = site.rng
    every = rng.random() < 0.3
    axes = list(range(x.rank)) if every else draw_axes(rng, x.rank)
    shape = x.shape
    for axis in axes:
        grown = _resized(shape, axis, rng.randint(min(1, x.shape[axis]), x.shape[axis] + 3))
        shape = grown if math.prod(grown) <= site.limits.max_elements else shape
    sizes = [shape[axis] for axis in axes]
    given = None if every else [signed(rng, axis, x.rank) for axis in axes]
    return Call("CenterCropPad", (x, vector(site, sizes)), attributes({"axes": given}))


def _with_zeros(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    return (with_zero(kept(call.facts())),)


def _trilu(site: Site) -> Call:
    x = site.operand(ranks=(2, site.limits.max_rank))
    upper = attributes({"upper": site.rng.choice((None, 0, 1))})
    if site.rng.random() < 0.3:
        return Call("Trilu", (x,), upper)
    reach = max(x.shape[-2:]) + 1
    return Call("Trilu", (x, scalar(site, site.rng.randint(-reach, reach))), upper)


def _trilu_holds(call: Call) -> bool:
    return call.operand(0).rank >= 2 and (not call.has(1) or numbers(call, 1) is not None)


def _reverse_sequence(site: Site) -> Call:
    x = site.operand(fits=lambda shape: len(shape) >= 2 and 0 not in shape[:2], draw=lambda: site.shape((2, 5)))
    time = site.rng.choice((None, 0, 1))
    batch = None if time is None else 1 - time
    axis = time or 0
    lengths = [site.rng.randint(1, x.shape[axis]) for _ in range(x.shape[1 - axis])]
    return Call("ReverseSequence", (x, vector(site, lengths)), attributes({"time_axis": time, "batch_axis": batch}))


def _reverse_sequence_holds(call: Call) -> bool:
    lengths = numbers(call, 1)
    longest = call.operand(0).shape[call.integer("time_axis")]
    return lengths is not None and all(1 <= length <= longest for length in lengths)


def _windows(call: Call) -> tuple[list[int], int] | None:
    """Number of blocks along each axis of the image, and elements of a block; None when the operands are unknown."""
    image, block = numbers(call, 1), numbers(call, 2)
    if image is None or block is None:
        return None
    rank = len(image)
    strides, dilations = call.integers("strides", (1,) * rank), call.integers("dilations", (1,) * rank)
    pads = call.integers("pads", (0,) * (2 * rank))
    spans = [image[i] + pads[i] + pads[i + rank] - dilations[i] * (block[i] - 1) - 1 for i in range(rank)]
    return [span // stride + 1 for span, stride in zip(spans, strides, strict=True)], math.prod(block)


def _col2im(site: Site) -> Call:
    rng = site.rng
    rank = rng.choice((2, 2, 2, 3))
    image = [rng.randint(2, 6) for _ in range(rank)]
    block = [rng.randint(1, min(3, size)) for size in image]
    strides = [rng.choice((1, 1, 2)) for _ in image] if rng.random() < 0.5 else None
    pads = [rng.choice((0, 1)) for _ in range(2 * rank)] if rng.random() < 0.5 else None
    dilations = None
    if rng.random() < 0.4:
        dilations = [rng.choice((1, 2)) if 2 * (b - 1) < size else 1 for size, b in zip(image, block, strict=True)]
    options = attributes({"strides": strides, "pads": pads, "dilations": dilations})
    shapes = (vector(site, image), vector(site, block))
    counts, elements = _windows(Call("Col2Im", (None, *shapes), options)) or ([], 0)

    def draw() -> Shape:
        return rng.choice((1, 2, 2)), elements * rng.choice((1, 1, 2, 3)), math.prod(counts)

    def fits(shape: Shape) -> bool:
        alike = len(shape) == 3 and shape[0] > 0 and shape[1] > 0 and shape[1] % elements == 0
        room = site.limits.max_elements
        return alike and shape[2] == math.prod(counts) and math.prod(shape) <= room

    return Call("Col2Im", (site.operand(fits=fits, draw=draw), *shapes), options)


def _col2im_bounds(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    counts, elements = _windows(call) or ([], 1)
    x = call.facts()
    terms = min(elements, math.prod(counts))
    low, high = min(0.0, x.lo) * terms, max(0.0, x.hi) * terms
    return (accumulated(Bounds(low, high, x.integral), terms, call.operand(0).dtype),)


def _col2im_holds(call: Call) -> bool:
    found = _windows(call)
    if found is None or min(found[0]) < 1:
        return False
    shape = call.operand(0).shape
    return shape[1] % found[1] == 0 and shape[2] == math.prod(found[0])


def _move(
    op: str,
    sample: Sampler,
    bounds: BoundsOf = carried,
    defined: Callable[[Call], bool] = always,
    since: int = 13,
    shapes: ShapeRule = "inferred",
) -> OpSpec:
    return OpSpec(op, PLAIN, sample, bounds, Exactness.MOVES, "slicing", defined, since, shapes=shapes, special=IEEE)


def _page_slice(call: Call) -> bool:
    """One start, end and step for each axis; no axis twice; no step of zero."""
    count, rank = call.operand(1).shape, call.operand(0).rank
    if len(count) != 1 or any(shape_of(call, place) not in (None, count) for place in (2, 3, 4)):
        return False
    axes = numbers_of(call, 3) if call.has(3) else tuple(range(count[0])) if count[0] == rank else (rank,)
    return (axes is None or different_axes(axes, rank)) and 0 not in (numbers_of(call, 4) or ())


def _page_pad(call: Call) -> bool:
    rank = call.operand(0).rank
    axes = numbers_of(call, 3) if call.has(3) else tuple(range(rank))
    if axes is None or not different_axes(axes, rank) or not scalars(2)(call):
        return False
    return call.operand(1).shape == (2 * len(axes),)


def _page_reverse_sequence(call: Call) -> bool:
    """One length for each member of the batch."""
    x = call.operand(0)
    if x.rank < 2 or {call.integer("time_axis"), call.integer("batch_axis", 1)} != {0, 1}:
        return False
    return call.operand(1).shape == (x.shape[call.integer("batch_axis", 1)],)


def _page_col2im(call: Call) -> bool:
    shape = call.operand(0).shape
    return len(shape) == 3 and 0 not in shape


SPECS = (
    replace(
        _move("Slice", _slice, shapes=rules.slices),
        well_formed=_page_slice,
        structural={"shape": (1, 2, 3, 4)},
        fusion="injective",
        traits=("holds-sizes", "shape-arithmetic"),
    ),
    replace(
        _move("Pad", _pad, _pad_bounds, _pad_holds, shapes=rules.pad),
        well_formed=_page_pad,
        defined_on=_keeps_what_it_crops,
        structural={"shape": (1, 3), "setting": (2,)},
        fusion="injective",
    ),
    replace(
        _move("CenterCropPad", _center_crop_pad, _with_zeros, since=18, shapes=rules.center_crop_pad),
        structural={"shape": (1,)},
        traits=("holds-sizes",),
    ),
    replace(
        _move("Trilu", _trilu, _with_zeros, _trilu_holds, since=14, shapes=rules.like_first),
        structural={"size": (1,)},
        fusion="injective",
    ),
    replace(
        _move(
            "ReverseSequence", _reverse_sequence, carried, _reverse_sequence_holds, since=10, shapes=rules.like_first
        ),
        well_formed=_page_reverse_sequence,
        fusion="injective",
    ),
    OpSpec(
        "Col2Im",
        NUMBERS,
        _col2im,
        _col2im_bounds,
        Exactness.INTEGER,
        "slicing",
        _col2im_holds,
        18,
        well_formed=_page_col2im,
        structural={"shape": (1, 2)},
    ),
)
