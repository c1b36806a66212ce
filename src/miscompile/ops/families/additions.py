"""Operators that onnx added since opset 20 and that belong to no older family.

AffineGrid (20), TensorScatter (24), BitCast and CumProd (26), SwiGLU (28). Sources: the operator pages of the ONNX
documentation.
"""

import math

import numpy as np

from miscompile.base.dtypes import BY_CODE, DTYPES, FLOATS, NUMBERS, PLAIN
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.attributes import attributes
from miscompile.graph.model import TensorType
from miscompile.ops import output_shapes as rules
from miscompile.ops.elementwise import narrow
from miscompile.ops.facts import Bounds, Exactness, Facts, Span
from miscompile.ops.page_rules import numbers_of
from miscompile.ops.rounding import rounded, span, times
from miscompile.ops.spec import Call, OpSpec, Shape, Site
from miscompile.ops.structural import INDEX_TYPES, accumulated, draw_axis, hull, kept, numbers, scalar, signed, vector

_FAMILY = "additions"
_REACH = {"float32": (2.0**-10, 1.9), "float16": (2.0**-10, 900.0), "bfloat16": (2.0**-10, 900.0)}
"""Ranges of floats whose bits are read as an integer, or vice versa: positive, normal, small as a signed integer.

float64 is left out because its bits are integers beyond the generator's limit for int64.
"""

_TWINS = {
    "float32": ("int32", "uint32"), "float16": ("int16", "uint16"), "bfloat16": ("int16", "uint16"),
    "int32": ("float32", "uint32"), "uint32": ("float32", "int32"),
    "int16": ("float16", "bfloat16", "uint16"), "uint16": ("float16", "bfloat16", "int16"),
    "int8": ("uint8",), "uint8": ("int8",), "int64": ("uint64",), "uint64": ("int64",),
    "int4": ("uint4",), "uint4": ("int4",), "int2": ("uint2",), "uint2": ("int2",),
}  # fmt: skip
"""Types of the same width that one element's bits are read as."""


def _word(value: float, dtype: str) -> int:
    """Return the bits of `value` in a float type as a number."""
    stored = tensor(np.array([value]), dtype).array
    return int(stored.view(f"uint{DTYPES[dtype].bits}")[0])


def _number(word: float, dtype: str) -> float:
    """Return the number whose bits in a float type are `word`."""
    info = DTYPES[dtype]
    return float(Tensor(dtype, np.array([int(word)], f"uint{info.bits}").view(info.storage)).numbers()[0])


def _domain(source: str, target: str) -> Span | None:
    """Return the interval in which every element's bits have a meaning in the target type; None: any element."""
    if source in _REACH:
        return _REACH[source]
    if target in _REACH:
        lo, hi = _REACH[target]
        return float(_word(lo, target)), float(_word(hi, target))
    return (0.0, float(2**30 if target == "int32" else 2**52)) if target in ("int32", "int64") else None


def _sample_bits(site: Site) -> Call:
    """Draw a BitCast between types of the same width."""
    target = site.rng.choice(_TWINS[site.dtype])
    x = site.operand(within=_domain(site.dtype, target))
    return Call("BitCast", (x,), attributes({"to": DTYPES[target].code}))


def _bounds_bits(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    """Bits grow with positive numbers; between integers the result is the same number, or may be any."""
    x, source, target = call.facts(), call.operand(0).dtype, types[0].dtype
    if source in _REACH:
        return (Bounds(_word(x.lo, source), _word(x.hi, source), integral=True),)
    if target in _REACH:
        return (Bounds(_number(x.lo, target), _number(x.hi, target)),)
    info = DTYPES[target]
    if x.inside(0, info.high):
        return (kept(x),)
    return (Bounds(info.low, info.high, integral=True),)


def _defined_bits(call: Call) -> bool:
    source, target = call.operand(0).dtype, BY_CODE[call.integer("to")].name
    if target not in _TWINS.get(source, ()):
        return False
    domain = _domain(source, target)
    return domain is None or call.facts().inside(*domain)


def _of_integers(call: Call) -> bool:
    """Only integers have reliable bits, because no operator guarantees the sign of a float zero."""
    return DTYPES[call.operand(0).dtype].kind != "float"


def _sample_products(site: Site) -> Call:
    x = site.operand(ranks=(1, site.limits.max_rank), within=(0, 2) if DTYPES[site.dtype].kind == "uint" else (-2, 2))
    rng = site.rng
    axis = signed(rng, draw_axis(rng, x.rank), x.rank)
    options = {"exclusive": rng.choice((None, 0, 1)), "reverse": rng.choice((None, 0, 1))}
    return Call("CumProd", (x, scalar(site, axis, rng.choice(INDEX_TYPES))), attributes(options))


def _bounds_products(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    """Bounds of products of one to n elements; exclusive products also include the empty product, which is one."""
    x, axis = call.operand(0), numbers(call, 1)
    n = max(x.shape) if axis is None else x.shape[axis[0]]
    factor = max(1.0, x.facts.magnitude)
    reach = factor**n if n * math.log(factor) < 600 else 1e300
    return (accumulated(Bounds(0.0 if x.facts.lo >= 0 else -reach, reach, x.facts.integral), n, x.dtype),)


def _defined_products(call: Call) -> bool:
    axis, rank = numbers(call, 1), call.operand(0).rank
    return axis is not None and -rank <= axis[0] < rank


def _sample_cache(site: Site) -> Call:
    """Draw a TensorScatter, which writes some steps into a cache, from a start index for each sample."""
    rng = site.rng
    past = site.operand(ranks=(2, site.limits.max_rank), fits=lambda shape: 0 not in shape)
    axis = 1 + draw_axis(rng, past.rank - 1)
    given = None if axis == past.rank - 2 and rng.random() < 0.5 else signed(rng, axis, past.rank)
    most, mode = past.shape[axis], rng.choice((None, "linear", "circular"))
    steps = rng.randint(1, most)
    update = site.operand(shape=(*past.shape[:axis], steps, *past.shape[axis + 1 :]))
    found = attributes({"axis": given, "mode": mode})
    if rng.random() < 0.25:
        return Call("TensorScatter", (past, update), found)
    last = 2 * most if mode == "circular" else most - steps
    return Call(
        "TensorScatter", (past, update, vector(site, [rng.randint(0, last) for _ in range(past.shape[0])])), found
    )


def _bounds_cache(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    return (hull((call.facts(0), call.facts(1))),)


def _defined_cache(call: Call) -> bool:
    """Guard: the update differs in the number of steps alone, and linear writes end within the cache."""
    past, update, axis = call.operand(0).shape, call.operand(1).shape, call.integer("axis", -2)
    if len(past) < 2 or 0 in past or not -len(past) < axis < len(past) or axis == 0 or len(update) != len(past):
        return False
    at = axis % len(past)
    rest = all(a == b for place, (a, b) in enumerate(zip(past, update, strict=True)) if place != at)
    if not rest or not 0 < update[at] <= past[at]:
        return False
    indices = numbers(call, 2) if call.has(2) else (0,) * past[0]
    if indices is None or len(indices) != past[0] or min(indices) < 0:
        return False
    return call.text("mode", "linear") == "circular" or max(indices) + update[at] <= past[at]


def _sample_grid(site: Site) -> Call:
    """Draw an AffineGrid over two or three axes. With aligned corners a single point has no defined position."""
    rng = site.rng
    batch, axes, aligned = rng.randint(1, 3), rng.choice((2, 2, 3)), rng.choice((None, 0, 1))
    sizes = [rng.randint(2 if aligned else 1, 5) for _ in range(axes)]
    theta = site.operand(shape=(batch, axes, axes + 1))
    return Call(
        "AffineGrid", (theta, vector(site, [batch, rng.randint(1, 3), *sizes])), attributes({"align_corners": aligned})
    )


def _bounds_grid(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    """Bounds of sums of coordinates between -1 and 1, times the matrix, and of the offset."""
    most = call.operand(0).shape[2] * call.facts().magnitude
    return (rounded(types[0].dtype, -most, most, terms=8, partial=most),)


def _defined_grid(call: Call) -> bool:
    theta, sizes = call.operand(0).shape, numbers(call, 1)
    if sizes is None or len(sizes) not in (4, 5) or theta != (sizes[0], len(sizes) - 2, len(sizes) - 1):
        return False
    return min(sizes[2:]) > (1 if call.integer("align_corners") else 0)


def _shape_grid(call: Call) -> tuple[Shape, ...] | None:
    sizes = numbers(call, 1)
    return None if sizes is None else ((sizes[0], *sizes[2:], len(sizes) - 2),)


def _sample_gated(site: Site) -> Call:
    a = site.operand()
    b = a if site.rng.random() < 0.1 else site.operand(shape=a.shape)
    alpha = None if site.rng.random() < 0.4 else narrow(site.rng.choice((0.5, 1.7, 2.0)))
    return Call("SwiGLU", (a, b), attributes({"alpha": alpha}))


def _bounds_gated(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    """Bounds of a product with x * sigmoid(alpha * x), whose minimum is -0.2785 / alpha."""
    a: Facts = call.facts(0)
    least = -0.2813 / call.number("alpha", 1.0)
    lo, hi = times((least if a.lo < 0 else 0.0, max(a.hi, 0.0)), span(call.facts(1)))
    return (Bounds(lo, hi),)


_BITS = tuple(dtype for dtype in PLAIN if dtype in _TWINS)


def _page_affine_grid(call: Call) -> bool:
    sizes = numbers_of(call, 1)
    theta = call.operand(0).shape
    return len(theta) == 3 and (
        sizes is None or (theta[0] == sizes[0] and theta[1:] == (len(sizes) - 2, len(sizes) - 1))
    )


SPECS = (
    OpSpec(
        "BitCast", _BITS, _sample_bits, _bounds_bits, Exactness.MOVES, _FAMILY, _defined_bits, since=26,
        exact_when=_of_integers, shapes="first",
    ),
    OpSpec(
        "CumProd", NUMBERS, _sample_products, _bounds_products, Exactness.INTEGER, _FAMILY, _defined_products, since=26,
        shapes=rules.like_first, structural={"shape": (1,)},
    ),
    OpSpec(
        "TensorScatter", PLAIN, _sample_cache, _bounds_cache, Exactness.MOVES, _FAMILY, _defined_cache, since=24,
        shapes=rules.like_first, structural={"shape": (2,)},
    ),
    OpSpec(
        "AffineGrid", ("float32", "float64"), _sample_grid, _bounds_grid, Exactness.ROUNDS, _FAMILY, _defined_grid,
        since=20, shapes=_shape_grid, well_formed=_page_affine_grid, structural={"shape": (1,)},
    ),
    OpSpec("SwiGLU", FLOATS, _sample_gated, _bounds_gated, Exactness.TRANSCENDENTAL, _FAMILY, since=28),
)  # fmt: skip
