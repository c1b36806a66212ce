"""Pooling: MaxPool, AveragePool, LpPool and their global forms.

Sources: the operator pages of the ONNX documentation. Windows that cover padding alone are undefined (the maximum of no
element, zero divided by zero) and never drawn.
"""

import math

import numpy as np

from miscompile.base.dtypes import DTYPES, FLOATS, is_float
from miscompile.core.tensor import tensor
from miscompile.graph.attributes import attributes
from miscompile.graph.model import TensorType
from miscompile.ops import output_shapes as rules
from miscompile.ops.facts import Bounds, Exactness, Facts
from miscompile.ops.page_rules import fits_windows
from miscompile.ops.rounding import rounded
from miscompile.ops.spatial import draw_window, images, window_attributes, window_of, without_default_dilations
from miscompile.ops.spec import Call, Operand, OpSpec, Shape, Site
from miscompile.ops.special import ORDER

_FAMILY = "pooling"


def _sample_max(site: Site) -> Call:
    """Draw a MaxPool. With the Indices output the input is a constant without equal elements.

    Indices is unspecified where several elements equal the maximum.
    """
    rng = site.rng
    indexed = rng.random() < 0.3
    x = _distinct(site) if indexed else images(site)
    found = window_attributes(site, draw_window(site, x.shape[2:], ceil=True, pooling=True))
    found["storage_order"] = rng.choice((None, 0, 1)) if indexed else None
    return Call("MaxPool", (x,), attributes(found), outputs=2 if indexed else 1)


def _distinct(site: Site) -> Operand:
    """Return a known operand whose elements all differ."""
    rng, whole = site.rng, not is_float(site.dtype)
    shape: Shape = (rng.randint(1, 2), rng.randint(1, 3), *(rng.randint(1, 5) for _ in range(rng.choice((1, 2, 2, 3)))))
    while math.prod(shape) > 240:
        shape = (*shape[:-1], max(1, shape[-1] - 1)) if shape[-1] > 1 else shape[:-1]
    count = math.prod(shape)
    lowest = max(DTYPES[site.dtype].low, -(count // 2)) if whole or rng.random() < 0.5 else 0.0
    numbers = np.array(rng.sample(range(count), count), np.float64) + lowest
    return site.known(tensor(numbers.reshape(shape), site.dtype).array, site.dtype)


def _defined_max(call: Call) -> bool:
    """Guard: every window meets the input; with Indices, no two elements are equal."""
    x = call.operand(0)
    if not window_of(call).covers(x.shape[2:]):
        return False
    return call.outputs == 1 or (x.value is not None and np.unique(x.value).size == x.value.size)


def _bounds_max(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    x = call.operand(0)
    found = (same(x.facts), Bounds(0, max(0, math.prod(x.shape) - 1), integral=True))
    return found[: call.outputs]


def same(x: Facts) -> Bounds:
    """Bounds of a result whose elements are elements of `x`."""
    return Bounds(x.lo, x.hi, x.integral)


def _sample_average(site: Site) -> Call:
    x = images(site)
    window = draw_window(site, x.shape[2:], dilated=site.opset >= 19, ceil=True, pooling=True)
    found = window_attributes(site, window)
    found["count_include_pad"] = site.rng.choice((None, 0, 1, 1))
    return Call("AveragePool", (x,), attributes(found if site.opset >= 19 else without_default_dilations(found)))


def _bounds_average(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    x, terms = call.facts(), window_of(call).elements
    lo, hi = (min(x.lo, 0.0), max(x.hi, 0.0)) if call.integer("count_include_pad") else (x.lo, x.hi)
    return (rounded(types[0].dtype, lo, hi, terms=terms)._replace(partial=terms * x.magnitude),)


def _covers(call: Call) -> bool:
    """Guard: every window meets the input."""
    return window_of(call).covers(call.operand(0).shape[2:])


def _sample_lp(site: Site) -> Call:
    x, newer = images(site), site.opset >= 18
    found = window_attributes(site, draw_window(site, x.shape[2:], dilated=newer, ceil=newer, pooling=True))
    found["p"] = site.rng.choice((None, 1, 2, 3))
    return Call("LpPool", (x,), attributes(found if newer else without_default_dilations(found)))


def _bounds_lp(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    return (_norm(types[0].dtype, call.facts(), window_of(call).elements, call.integer("p", 2)),)


def _norm(dtype: str, x: Facts, terms: int, p: int) -> Bounds:
    """Bounds of the p-norm of `terms` elements of `x`, the sum of whose powers must not overflow either."""
    power = float(terms) * x.magnitude**p
    wide = rounded(dtype, 0.0, power ** (1 / p), terms=terms)
    return Bounds(0.0, wide.hi, partial=power)


def _terms(call: Call) -> int:
    return math.prod(call.operand(0).shape[2:])


def _bounds_global_average(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    x, terms = call.facts(), _terms(call)
    return (rounded(types[0].dtype, x.lo, x.hi, terms=terms)._replace(partial=terms * x.magnitude),)


def _bounds_global_max(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    return (same(call.facts()),)


def _bounds_global_lp(call: Call, types: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    return (_norm(types[0].dtype, call.facts(), _terms(call), call.integer("p", 2)),)


def _sample_global_average(site: Site) -> Call:
    return Call("GlobalAveragePool", (images(site),))


def _sample_global_max(site: Site) -> Call:
    return Call("GlobalMaxPool", (images(site),))


def _sample_global_lp(site: Site) -> Call:
    return Call("GlobalLpPool", (images(site),), attributes({"p": site.rng.choice((None, 1, 2, 3))}))


def _filled(call: Call) -> bool:
    """Guard: the input is not empty."""
    return _terms(call) > 0


def _page_global(call: Call) -> bool:
    """There are axes behind batch and channels, as the page has them: (N, C, D1, ..., Dn)."""
    return call.operand(0).rank >= 3


_ROUNDS, _MOVES, _POWERS = Exactness.ROUNDS, Exactness.MOVES, Exactness.TRANSCENDENTAL


def _page_pool(call: Call) -> bool:
    return "kernel_shape" in call.attributes and fits_windows(call, call.operand(0).shape) and call.integer("p", 2) >= 1


SPECS = (
    OpSpec(
        "MaxPool",
        (*FLOATS, "int8", "uint8"),
        _sample_max,
        _bounds_max,
        _MOVES,
        _FAMILY,
        _defined_max,
        shapes=rules.pooled,
        well_formed=_page_pool,
        fusion="out-elementwise-fusable",
        special=ORDER,
    ),
    OpSpec(
        "AveragePool",
        FLOATS,
        _sample_average,
        _bounds_average,
        _ROUNDS,
        _FAMILY,
        _covers,
        shapes=rules.pooled,
        well_formed=_page_pool,
        fusion="out-elementwise-fusable",
    ),
    OpSpec(
        "LpPool", FLOATS, _sample_lp, _bounds_lp, _POWERS, _FAMILY, _covers, shapes=rules.pooled, well_formed=_page_pool
    ),
    OpSpec(
        "GlobalAveragePool",
        FLOATS,
        _sample_global_average,
        _bounds_global_average,
        _ROUNDS,
        _FAMILY,
        _filled,
        shapes=rules.pooled_whole,
        well_formed=_page_global,
        fusion="reduction",
    ),
    OpSpec(
        "GlobalMaxPool",
        FLOATS,
        _sample_global_max,
        _bounds_global_max,
        _MOVES,
        _FAMILY,
        _filled,
        shapes=rules.pooled_whole,
        well_formed=_page_global,
        fusion="reduction",
        special=ORDER,
    ),
    OpSpec(
        "GlobalLpPool",
        FLOATS,
        _sample_global_lp,
        _bounds_global_lp,
        _POWERS,
        _FAMILY,
        _filled,
        shapes=rules.pooled_whole,
        well_formed=_page_global,
    ),
)
