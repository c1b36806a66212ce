"""Quantisation: QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, QLinearMatMul and QLinearConv.

Sources: the operator pages of the ONNX documentation. Rounding makes these operators discontinuous: a quotient that two
implementations compute half an ulp apart may round to different integers. With scales that are powers of two every
product is exact; other scales are drawn too. Quantised results never count as exact.
"""

import math
from collections.abc import Sequence

import numpy as np

from miscompile.base.dtypes import DTYPES, SMALL, SMALL_FLOATS, SMALL_SINCE, is_float
from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.attributes import PlainValue, attributes
from miscompile.graph.model import TensorType
from miscompile.ops import output_shapes as rules
from miscompile.ops.elementwise import narrow
from miscompile.ops.facts import Bounds, Exactness, Facts
from miscompile.ops.page_rules import fits_filters, lines, scalars, shape_of, stacks
from miscompile.ops.rounding import minus, rounded, span, times
from miscompile.ops.shapes import matrix_partner
from miscompile.ops.spatial import conv_attributes, draw_filters, draw_group, draw_window, images, window_of
from miscompile.ops.spec import Call, Operand, OpSpec, Shape, Site

_FAMILY = "quantization"
_BYTES = ("int8", "uint8")
_WORDS = ("int16", "uint16")
_POWERS = (-4, -3, -2, -1, 0, 1)


def _scale(site: Site, shape: Shape, dtype: str, *, powers: bool) -> Operand:
    """Return known positive scales: `powers` of two, or any others."""
    rng, count = site.rng, math.prod(shape)
    if powers:
        numbers = np.array([2.0 ** rng.choice(_POWERS) for _ in range(count)]).reshape(shape)
        return site.known(tensor(numbers, dtype).array, dtype)
    numbers = np.array([narrow(rng.uniform(0.05, 2)) for _ in range(count)]).reshape(shape)
    return site.known(tensor(numbers, dtype).array, dtype)


def _powers(site: Site) -> bool:
    """Draw whether all scales of a call are powers of two."""
    return site.rng.random() < 0.6


def _positive(scale: Operand) -> bool:
    """Tell whether the elements of `scale` are known and positive."""
    return scale.value is not None and scale.facts.lo > 0


def _zeros(site: Site, shape: Shape, dtype: str) -> Operand:
    """Return known zero points: zero, or anything in the type's range."""
    rng, info = site.rng, DTYPES[dtype]
    count = math.prod(shape)
    numbers = [0] * count  # float types allow only zero as zero point
    if not is_float(dtype) and rng.random() < 0.7:
        numbers = [rng.randint(int(info.low), int(info.high)) for _ in range(count)]
    return site.known(tensor(np.array(numbers, np.int64).reshape(shape), dtype).array, dtype)


def _even_zero(site: Site, dtype: str) -> Operand:
    """Return a known, even zero point of a result.

    It is the same then whether a half is rounded to the even neighbour before or after the zero point is added.
    """
    info = DTYPES[dtype]
    return site.known(np.array(2 * site.rng.randint(int(info.low) // 2, int(info.high) // 2), dtype))


def _granularity(site: Site, shape: Shape) -> tuple[Shape, dict[str, PlainValue | None]]:
    """Draw the shape of a scale and the attributes that go with it: per tensor, per axis, or (from 21) per block."""
    rng, chance = site.rng, site.rng.random()
    axes = [axis for axis in range(len(shape)) if shape[axis] > 0]
    if chance < 0.5 or not axes:
        return (), {"axis": rng.choice((None, 0)) if len(shape) > 1 else None}
    axis = 1 if 1 in axes and rng.random() < 0.4 else rng.choice(axes)
    signed = None if axis == 1 and rng.random() < 0.5 else rng.choice((axis, axis - len(shape)))
    if chance < 0.85 or site.opset < 21 or 0 in shape:
        return (shape[axis],), {"axis": signed}
    block = rng.randint(1, shape[axis])
    blocks = -(-shape[axis] // block)
    if blocks == math.prod(shape) // shape[axis] == 1:  # one scale for everything: the plain form says the same
        return (), {}
    return (*shape[:axis], blocks, *shape[axis + 1 :]), {"axis": signed, "block_size": block}


def _results(opset: int) -> tuple[str, ...]:
    """Return the types that QuantizeLinear may give, those in use more often."""
    stored = tuple(dtype for dtype, since in SMALL_SINCE.items() if opset >= since)
    if opset < 21:
        return (*_BYTES * 4, *stored)
    return (*_BYTES * 6, *_WORDS * 2, *("int4", "uint4") * 2, *stored)


def _sample_quantize(site: Site) -> Call:
    """Draw a QuantizeLinear. Integers of 32 bits are left out from 19 to 22, where their scale would be an integer."""
    rng = site.rng
    if site.dtype == "int32" and 19 <= site.opset < 23:
        raise RejectedDraft("the scale of int32 data would have to be int32")
    x = site.operand(ranks=(0, 5), fits=lambda shape: 0 not in shape[1:])
    shape, found = _granularity(site, x.shape)
    precise = "float32" if site.opset < 19 or site.dtype == "int32" else site.dtype
    if site.opset >= 23 and rng.random() < 0.15:
        precise = rng.choice(("float32", "float16", "bfloat16"))
    scale = _scale(site, shape, precise, powers=_powers(site))
    dtype = rng.choice(_results(site.opset))
    if dtype in SMALL_FLOATS and dtype != "float4e2m1":
        found["saturate"] = rng.choice((None, 1))
    told = site.opset >= 21 and (dtype != "uint8" or rng.random() < 0.2)
    if rng.random() < 0.25 and (told or dtype == "uint8"):
        found["output_dtype"] = DTYPES[dtype].code if told else None
        return Call("QuantizeLinear", (x, scale), attributes(found))
    return Call("QuantizeLinear", (x, scale, _zeros(site, shape, dtype)), attributes(found))


def _bounds_quantize(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    """Bounds of the saturated round(x / scale) + zero point; the quotient has the precision of the scale."""
    info, x, scale = DTYPES[types[0].dtype], call.facts(0), call.facts(1)
    lo, hi = times(span(x), (1 / scale.hi, 1 / scale.lo))
    slack = max(abs(lo), abs(hi)) * DTYPES[call.operand(1).dtype].eps
    lo, hi = lo - slack, hi + slack
    if info.kind == "float":
        return (Bounds(max(min(lo, info.high), info.low), min(max(hi, info.low), info.high)),)
    zero = call.facts(2) if call.has(2) else Facts(0, 0)
    lo, hi = math.floor(lo) - 1 + zero.lo, math.ceil(hi) + 1 + zero.hi
    return (Bounds(max(min(lo, info.high), info.low), min(max(hi, info.low), info.high), integral=True),)


def _scaled(call: Call) -> bool:
    return _positive(call.operand(1))


def _sample_dequantize(site: Site) -> Call:
    """Draw a DequantizeLinear. A zero point of 32-bit data would have to be zero, so it is left out."""
    rng = site.rng
    x = site.operand(ranks=(0, 5), fits=lambda shape: 0 not in shape[1:])
    shape, found = _granularity(site, x.shape)
    dtype = rng.choice(("float32", "float32", "float16", "bfloat16")) if site.opset >= 19 else "float32"
    scale = _scale(site, shape, dtype, powers=_powers(site))
    if site.opset >= 23 and rng.random() < 0.2:
        found["output_dtype"] = DTYPES[dtype].code
    inputs = [x, scale]
    if site.dtype != "int32" and rng.random() < 0.7:
        inputs.append(_zeros(site, shape, site.dtype))
    return Call("DequantizeLinear", tuple(inputs), attributes(found))


def _difference(inputs: Sequence[Operand | None]) -> tuple[float, float]:
    """Return the interval of x minus its zero point, input 2 where there is one."""
    x, zero = inputs[0], inputs[2] if len(inputs) > 2 else None
    assert x is not None
    return span(x.facts) if zero is None else minus(span(x.facts), span(zero.facts))


def _bounds_dequantize(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    lo, hi = times(_difference(call.inputs), span(call.facts(1)))
    return (rounded(types[0].dtype, lo, hi, terms=2),)


def _sample_dynamic(site: Site) -> Call:
    """Draw a DynamicQuantizeLinear of data that are not all zero: of one sign, or known."""
    rng = site.rng
    if rng.random() < 0.5:
        within = (0.25, 64.0) if rng.random() < 0.5 else (-64.0, -0.25)
        return Call(
            "DynamicQuantizeLinear", (site.operand(within=within, fits=lambda shape: 0 not in shape),), outputs=3
        )
    shape = tuple(max(1, size) for size in site.shape())
    numbers = np.array([narrow(rng.uniform(-3, 3)) for _ in range(math.prod(shape))], np.float32)
    numbers[rng.randrange(numbers.size)] = rng.choice((-3.0, 3.0, 0.5))
    return Call("DynamicQuantizeLinear", (site.known(numbers.reshape(shape)),), outputs=3)


def _defined_dynamic(call: Call) -> bool:
    x = call.operand(0)
    one_sign = (x.facts.lo > 0 or x.facts.hi < 0) and math.prod(x.shape) > 0
    return one_sign or (x.value is not None and bool(x.value.any()))


def _bounds_dynamic(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    """Bounds of the result, of the scale (largest minus smallest of data and zero, over 255), of the zero point."""
    x = call.operand(0)
    widest, least = max(x.facts.hi, 0.0) - min(x.facts.lo, 0.0), max(x.facts.lo, -x.facts.hi)
    if x.value is not None:
        least = float(np.abs(Tensor(x.dtype, x.value).numbers()).max())
    byte = Bounds(0, 255, integral=True)
    return (byte, Bounds(0.99 * least / 255, 1.01 * widest / 255), byte)


def _sample_matmul(site: Site) -> Call:
    rng = site.rng
    left = site.operand(ranks=(2, 4), fits=lambda shape: 0 not in shape)
    shape = matrix_partner(site, left.shape, vector=False)
    kinds = ("float32", "float32", "float32", "float16", "bfloat16") if site.opset >= 21 else ("float32",)
    precise, other, result = rng.choice(kinds), rng.choice(_BYTES), rng.choice(_BYTES)
    powers = _powers(site)
    columns = shape[-1:] if len(shape) == 2 and 0 not in shape and rng.random() < 0.3 else ()
    right = site.weight(shape, other) if rng.random() < 0.7 else site.operand(other, shape=shape)
    inputs = [
        left, _scale(site, (), precise, powers=powers), _zeros(site, (), site.dtype),
        right, _scale(site, columns, precise, powers=powers), _zeros(site, columns, other),
        _scale(site, (), precise, powers=powers), _even_zero(site, result),
    ]  # fmt: skip
    return Call("QLinearMatMul", tuple(inputs))


def _bounds_result(
    inner: int, call: Call, types: tuple[TensorType, ...], bias: int | None = None
) -> tuple[Bounds, ...]:
    """Bounds of a saturated result: round(sum of `inner` products * scales) + zero point."""
    info = DTYPES[types[0].dtype]
    left, right = (
        _difference((call.inputs[0], None, call.inputs[2])),
        _difference((call.inputs[3], None, call.inputs[5])),
    )
    product = times(left, right)
    total = (inner * min(product[0], 0.0), inner * max(product[1], 0.0))
    if bias is not None and call.has(bias):
        total = (total[0] + call.facts(bias).lo, total[1] + call.facts(bias).hi)
    scales = times(span(call.facts(1)), span(call.facts(4)))
    lo, hi = times(times(total, scales), (1 / call.facts(6).hi, 1 / call.facts(6).lo))
    # 16-bit scales may be multiplied in 16 bits, and three such steps move a result by less than one in thirty.
    slack = 1 + max(abs(lo), abs(hi)) / 30
    lo, hi = math.floor(lo - slack) + call.facts(7).lo, math.ceil(hi + slack) + call.facts(7).hi
    return (Bounds(max(min(lo, info.high), info.low), min(max(hi, info.low), info.high), integral=True),)


def _bounds_matmul(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    return _bounds_result(call.operand(0).shape[-1], call, types)


def _defined_matmul(call: Call) -> bool:
    return all(_positive(call.operand(index)) for index in (1, 4, 6))


def _sample_conv(site: Site) -> Call:
    rng = site.rng
    x = images(site)
    window, group = draw_window(site, x.shape[2:]), draw_group(site, x.shape[1])
    filters = draw_filters(site, x.shape, window.kernel, group)
    powers = _powers(site)
    dtype, result = rng.choice(_BYTES), rng.choice(_BYTES)
    channels = filters[:1] if rng.random() < 0.4 else ()
    inputs = [
        x, _scale(site, (), "float32", powers=powers), _zeros(site, (), site.dtype),
        site.weight(filters, dtype), _scale(site, channels, "float32", powers=powers), _zeros(site, channels, dtype),
        _scale(site, (), "float32", powers=powers), _even_zero(site, result),
    ]  # fmt: skip
    if rng.random() < 0.5:
        inputs.append(site.weight(filters[:1], "int32", within=(-1000, 1000)))
    return Call("QLinearConv", tuple(inputs), attributes(conv_attributes(site, window, group)))


def _bounds_conv(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    return _bounds_result(math.prod(call.operand(3).shape[1:]), call, types, bias=8)


def _defined_conv(call: Call) -> bool:
    window = window_of(call, call.operand(3).shape[2:])
    return _defined_matmul(call) and window.fits(call.operand(0).shape[2:])


def _exact_dequantize(call: Call) -> bool:
    """Tell whether the scales are known powers of two and hold every difference, so that all products are exact."""
    scale = call.operand(1)
    if scale.value is None:
        return False
    numbers = Tensor(scale.dtype, scale.value).numbers().astype(np.float64)
    lo, hi = _difference(call.inputs)
    fits = max(abs(lo), abs(hi)) <= 2.0 ** DTYPES[scale.dtype].digits
    return fits and bool((np.frexp(numbers)[0] == 0.5).all())


_INDEX = Exactness.INDEX
_ROUNDS = Exactness.ROUNDS
"""Quantising never counts as exact: an integer kernel that replaces a whole chain may round to the next integer."""


def _page_qlinear_matmul(call: Call) -> bool:
    left, right = call.operand(0).shape, call.operand(3).shape
    sides = ((1, left, -2), (4, right, -1))
    pairs = _none_below_zero(call, 1, 4, 6) and all(
        call.operand(place).shape == call.operand(place + 1).shape for place in (1, 4, 6)
    )
    return pairs and scalars(6)(call) and all(lines(call.operand(place), matrix, at) for place, matrix, at in sides)


def _page_qlinear_conv(call: Call) -> bool:
    filters = call.operand(3).shape
    scale = call.operand(4).shape
    numbers = (
        scalars(1, 2, 6, 7)(call)
        and _none_below_zero(call, 1, 4, 6)
        and scale in ((), filters[:1])
        and call.operand(5).shape == scale
    )
    return numbers and fits_filters(call, call.operand(0).shape, filters, shape_of(call, 8))


def _page_quantize(call: Call) -> bool:
    """One scale; or one for each place on the axis; or, with a block size, one for each block of places.

    No scale that is known is zero or negative.
    """
    x, scale, axis = call.operand(0).shape, call.operand(1).shape, call.integer("axis", 1)
    if shape_of(call, 2) not in (None, scale) or not _none_below_zero(call, 1):
        return False
    block = call.integer("block_size")
    if not block:
        return not scale or (len(scale) == 1 and -len(x) <= axis < len(x) and scale[0] == x[axis])
    if block < 0 or len(scale) != len(x) or not -len(x) <= axis < len(x):
        return False
    at = axis % len(x)
    wanted = tuple(-(-size // block) if place == at else size for place, size in enumerate(x))
    return scale == wanted


def _none_below_zero(call: Call, *places: int) -> bool:
    """Tell whether no scale at `places` that is known is zero or negative."""
    scales = [call.operand(place) for place in places]
    return all(scale.value is None or scale.value.size == 0 or scale.facts.lo > 0 for scale in scales)


SPECS = (
    OpSpec(
        "QuantizeLinear", ("float32", "int32", "float16", "bfloat16"), _sample_quantize, _bounds_quantize, _ROUNDS,
        _FAMILY, _scaled, shapes=rules.like_first, well_formed=_page_quantize, structural={"quantisation": (1, 2)},
        fusion="broadcast", traits=("quantises",), probes=30,
    ),
    OpSpec(
        "DequantizeLinear", (*_BYTES, *_WORDS, "int32", *SMALL), _sample_dequantize, _bounds_dequantize, _INDEX,
        _FAMILY, _scaled, exact_when=_exact_dequantize, shapes=rules.like_first, well_formed=_page_quantize,
        structural={"quantisation": (1, 2)}, fusion="broadcast", traits=("float32-numbers",), probes=20,
    ),
    OpSpec(
        "DynamicQuantizeLinear", ("float32",), _sample_dynamic, _bounds_dynamic, _ROUNDS, _FAMILY,
        _defined_dynamic, traits=("quantises",),
    ),
    OpSpec(
        "QLinearMatMul", _BYTES, _sample_matmul, _bounds_matmul, _ROUNDS, _FAMILY, _defined_matmul,
        shapes=rules.product(0, 3), well_formed=_page_qlinear_matmul, structural={"quantisation": (1, 2, 4, 5, 6, 7)},
        broadcasting=stacks, fusion="out-elementwise-fusable", traits=("quantises",),
    ),
    OpSpec(
        "QLinearConv", _BYTES, _sample_conv, _bounds_conv, _ROUNDS, _FAMILY, _defined_conv, shapes=rules.convolution(3),
        well_formed=_page_qlinear_conv, structural={"quantisation": (1, 2, 4, 5, 6, 7, 8)},
        fusion="out-elementwise-fusable", traits=("quantises",),
    ),
)  # fmt: skip
