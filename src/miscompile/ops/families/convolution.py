"""Convolutions: Conv, ConvTranspose and ConvInteger, in one to three dimensions.

Sources: the operator pages of the ONNX documentation.
"""

import math

from miscompile.base.dtypes import FLOATS
from miscompile.graph.attributes import PlainValue, attributes
from miscompile.graph.model import TensorType
from miscompile.ops import output_shapes as rules
from miscompile.ops.facts import Bounds, Exactness, Facts
from miscompile.ops.page_rules import fits_filters, fits_windows, shape_of
from miscompile.ops.rounding import dot, minus, span
from miscompile.ops.shapes import draw_count
from miscompile.ops.spatial import (
    Window,
    check_size,
    conv_attributes,
    draw_filters,
    draw_group,
    draw_window,
    images,
    window_of,
)
from miscompile.ops.spec import Call, Operand, OpSpec, Shape, Site

_FAMILY = "convolution"
_BYTES = ("int8", "uint8")


def _sample_conv(site: Site) -> Call:
    x = images(site)
    window, group = draw_window(site, x.shape[2:]), draw_group(site, x.shape[1])
    filters = draw_filters(site, x.shape, window.kernel, group)
    check_size(site, (x.shape[0], filters[0], *window.output(x.shape[2:])))
    inputs: list[Operand | None] = [x, site.weight(filters)]
    if site.rng.random() < 0.6:
        inputs.append(site.weight(filters[:1]))
    return Call("Conv", tuple(inputs), attributes(conv_attributes(site, window, group)))


def _bounds_conv(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    terms = math.prod(call.operand(1).shape[1:])
    bias = call.facts(2) if call.has(2) else None
    return (dot(types[0].dtype, terms, call.facts(0), call.facts(1), padded=True, bias=bias),)


def _defined_conv(call: Call) -> bool:
    """Guard: the window fits over the input at least once."""
    return window_of(call, call.operand(1).shape[2:]).fits(call.operand(0).shape[2:])


def _sample_transpose(site: Site) -> Call:
    """Draw a ConvTranspose: the window slides over the output, whose size its attributes make.

    SAME padding and `output_shape` are only drawn where the pads that follow from them are not negative, and the
    output is not smaller than the input, because onnx's inference says nothing of smaller ones.
    """
    rng = site.rng
    x = images(site)
    spatial, group = x.shape[2:], draw_group(site, x.shape[1])
    rank = len(spatial)
    kernel = tuple(rng.randint(1, 4) for _ in spatial)
    strides = tuple(rng.choice((1, 2, 3)) for _ in spatial) if rng.random() < 0.6 else (1,) * rank
    dilations = tuple(rng.choice((1, 2)) for _ in spatial) if rng.random() < 0.3 else (1,) * rank
    window = Window(kernel, strides, dilations, (0,) * (2 * rank))
    extra = tuple(rng.randrange(stride) for stride in strides) if rng.random() < 0.4 else (0,) * rank
    found: dict[str, PlainValue | None] = {"output_padding": extra if any(extra) or rng.random() < 0.1 else None}
    chance = rng.random()
    if chance < 0.25 and not any(extra) and all(window.extent(axis) >= strides[axis] for axis in range(rank)):
        window = Window(kernel, strides, dilations, window.pads, rng.choice(("SAME_UPPER", "SAME_LOWER")))
    elif chance < 0.35:
        window = Window(kernel, strides, dilations, window.pads, "VALID")
    elif chance < 0.45:
        full = transposed_sizes(window, spatial, extra)
        found["output_shape"] = tuple(rng.randint(size, most) for size, most in zip(spatial, full, strict=True))
    elif chance < 0.8:
        full = transposed_sizes(window, spatial, extra)
        begins = tuple(rng.randint(0, min(2, (size - 1) // 2)) for size in full)
        ends = tuple(rng.randint(0, min(2, (size - 1) // 2)) for size in full)
        window = Window(kernel, strides, dilations, begins + ends)
    filters = (x.shape[1], draw_count(rng, site.limits, max(1, 6 // group)), *kernel)
    check_size(site, (x.shape[0], filters[1] * group, *transposed_sizes(window, spatial, extra)))
    inputs: list[Operand | None] = [x, site.weight(filters)]
    if rng.random() < 0.6:
        inputs.append(site.weight((filters[1] * group,)))
    found.update(conv_attributes(site, window, group))
    if "output_shape" in found:
        found["pads"] = None
    return Call("ConvTranspose", tuple(inputs), attributes(found))


def transposed_sizes(window: Window, spatial: Shape, extra: Shape) -> Shape:
    """Return the output sizes of a ConvTranspose with output_padding `extra`, before `output_shape` overrides them."""
    if window.auto_pad.startswith("SAME"):
        return tuple(size * stride for size, stride in zip(spatial, window.strides, strict=True))
    return tuple(
        window.strides[axis] * (size - 1) + extra[axis] + window.extent(axis) - sum(window.padding(axis, size))
        for axis, size in enumerate(spatial)
    )


def _bounds_transpose(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    """Bounds by the number of products when every filter element meets an input element."""
    filters = call.operand(1).shape
    terms = filters[0] // call.integer("group", 1) * math.prod(filters[2:])
    bias = call.facts(2) if call.has(2) else None
    return (dot(types[0].dtype, terms, call.facts(0), call.facts(1), padded=True, bias=bias),)


def _defined_transpose(call: Call) -> bool:
    """Guard: the output is not empty, and the pads that SAME or `output_shape` ask for are not negative.

    The two are never drawn together, because the page leaves open whether SAME adds output_padding to the output.
    """
    spatial = call.operand(0).shape[2:]
    window = window_of(call, call.operand(1).shape[2:])
    extra = call.integers("output_padding", (0,) * len(spatial))
    if window.auto_pad.startswith("SAME") and any(extra):
        return False
    free = Window(window.kernel, window.strides, window.dilations, (0,) * len(window.pads))
    full = transposed_sizes(free, spatial, extra)
    wanted = call.integers("output_shape", transposed_sizes(window, spatial, extra))
    least = spatial if "output_shape" in call.attributes else (1,) * len(spatial)
    return all(low <= size <= most for low, size, most in zip(least, wanted, full, strict=True))


def _sample_conv_integer(site: Site) -> Call:
    rng = site.rng
    x = images(site)
    window, group = draw_window(site, x.shape[2:]), draw_group(site, x.shape[1])
    filters = draw_filters(site, x.shape, window.kernel, group)
    check_size(site, (x.shape[0], filters[0], *window.output(x.shape[2:])))
    dtype = rng.choice(_BYTES)
    zeros: list[Operand | None] = [None, None]
    if rng.random() < 0.7:
        zeros[0] = site.weight(())
    if rng.random() < 0.6:
        zeros[1] = site.weight(filters[:1] if rng.random() < 0.3 else (), dtype)
    while zeros and zeros[-1] is None:
        zeros.pop()
    inputs = (x, site.weight(filters, dtype), *zeros)
    return Call("ConvInteger", inputs, attributes(conv_attributes(site, window, group)))


def _bounds_conv_integer(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    """Bounds of the products of centred elements; padding holds the zero point of x, so it adds nothing."""
    centred = []
    for index in (0, 1):
        interval = span(call.facts(index))
        if call.has(index + 2):
            interval = minus(interval, span(call.facts(index + 2)))
        centred.append(Facts(*interval, integral=True))
    return (dot("int32", math.prod(call.operand(1).shape[1:]), *centred, padded=True),)


def _page_conv(call: Call) -> bool:
    return fits_filters(call, call.operand(0).shape, call.operand(1).shape, shape_of(call, 2))


def _page_conv_transpose(call: Call) -> bool:
    x, filters, group = call.operand(0).shape, call.operand(1).shape, call.integer("group", 1)
    if len(filters) != len(x) or group < 1 or not fits_windows(call, x, filters[2:], over_result=True):
        return False
    return x[1] == filters[0] and x[1] % group == 0 and shape_of(call, 2) in (None, (filters[1] * group,))


def _page_conv_integer(call: Call) -> bool:
    filters = call.operand(1).shape
    zeros = shape_of(call, 2) in (None, ()) and shape_of(call, 3) in (None, (), filters[:1])
    return zeros and fits_filters(call, call.operand(0).shape, filters, None)


SPECS = (
    OpSpec(
        "Conv", FLOATS, _sample_conv, _bounds_conv, Exactness.INTEGER, _FAMILY, _defined_conv,
        shapes=rules.convolution(1), well_formed=_page_conv, fusion="out-elementwise-fusable",
        traits=("weights-as-inputs",),
    ),
    OpSpec(
        "ConvTranspose", FLOATS, _sample_transpose, _bounds_transpose, Exactness.INTEGER, _FAMILY, _defined_transpose,
        well_formed=_page_conv_transpose, fusion="out-elementwise-fusable",
    ),
    OpSpec(
        "ConvInteger", _BYTES, _sample_conv_integer, _bounds_conv_integer, Exactness.INTEGER, _FAMILY, _defined_conv,
        shapes=rules.convolution(1), well_formed=_page_conv_integer, structural={"quantisation": (2, 3)},
        fusion="out-elementwise-fusable",
    ),
)  # fmt: skip
