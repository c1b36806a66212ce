"""Operators that read or write at indices: the Gather and Scatter families, and OneHot.

Sources: the operator pages of the ONNX documentation. Indices are known constants within [-size, size), because an
index out of range is undefined behaviour.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from miscompile.base.dtypes import PLAIN
from miscompile.core.tensor import Array, Tensor
from miscompile.graph.attributes import attributes
from miscompile.graph.model import Node, TensorType
from miscompile.ops import output_shapes as rules
from miscompile.ops.facts import Bounds, Exactness
from miscompile.ops.page_rules import has_axis, shape_of
from miscompile.ops.spec import BoundsOf, Call, Operand, OpSpec, RunOperands, Sampler, Shape, ShapeRule, Site, always
from miscompile.ops.special import IEEE
from miscompile.ops.structural import (
    accumulated,
    axis_of,
    carried,
    draw_axis,
    hull,
    in_range,
    index_type,
    indices,
    kept,
    numbers,
    scalar,
    signed,
    vector,
)


def _data(site: Site) -> Operand:
    """Return an operand that has an axis to index."""
    return site.operand(fits=lambda shape: len(shape) > 0 and 0 not in shape)


def _axis(site: Site, x: Operand) -> tuple[int, int | None]:
    """Draw an axis, and how attribute `axis` says it (None: left out, axis 0)."""
    axis = draw_axis(site.rng, x.rank)
    return axis, None if axis == 0 and site.rng.random() < 0.5 else signed(site.rng, axis, x.rank)


def _gather(site: Site) -> Call:
    x = _data(site)
    axis, written = _axis(site, x)
    rng, room = site.rng, max(1, site.limits.max_elements // (math.prod(x.shape) // x.shape[axis]))
    rank = min(rng.choice((0, 1, 1, 2, 3)), site.limits.max_rank + 1 - x.rank)
    shape = site.shape((rank, rank))
    while math.prod(shape) > room:
        shape = tuple(max(1, size // 2) for size in shape)
    chosen = site.known(indices(rng, shape, x.shape[axis], index_type(rng)))
    return Call("Gather", (x, chosen), attributes({"axis": written}))


def _gather_holds(call: Call) -> bool:
    x, chosen = call.operand(0), call.operand(1)
    size = x.shape[axis_of(call, x.rank)]
    if chosen.value is None:
        return chosen.facts.inside(-size, size - 1)
    return in_range(chosen.value, size)


def _index_shape(site: Site, x: Operand, axis: int, most: int) -> Shape:
    """Draw the shape of element indices: up to `most` along `axis`, elsewhere the operand's size, or less."""
    less = site.rng.random() < 0.3
    sizes = [site.rng.randint(1, size) if less else size for size in x.shape]
    room = site.limits.max_elements // max(1, math.prod(sizes[:axis] + sizes[axis + 1 :]))
    sizes[axis] = site.rng.randint(1, max(1, min(most, room)))
    return tuple(sizes)


def _gather_elements(site: Site) -> Call:
    x = _data(site)
    axis, written = _axis(site, x)
    shape = _index_shape(site, x, axis, 2 * x.shape[axis])
    chosen = site.known(indices(site.rng, shape, x.shape[axis], index_type(site.rng)))
    return Call("GatherElements", (x, chosen), attributes({"axis": written}))


def _tuples(site: Site, shape: Shape, sizes: Shape) -> Array:
    """Draw index tuples: an int64 array of shape [*shape, number of `sizes`], each column within its size."""
    columns = [indices(site.rng, shape, size, "int64") for size in sizes]
    return np.stack(columns, axis=-1)


def _gather_nd(site: Site) -> Call:
    x = _data(site)
    rng = site.rng
    batch = draw_axis(rng, x.rank) if rng.random() < 0.4 else 0
    depth = 1 + draw_axis(rng, x.rank - batch)
    outer = min(rng.choice((0, 1, 1, 2)), site.limits.max_rank - (x.rank - depth))
    lead = x.shape[:batch] + site.shape((max(0, outer), max(0, outer)))
    room = site.limits.max_elements // math.prod(x.shape[batch + depth :])
    if math.prod(lead) > room or (not lead and depth == x.rank):
        lead = x.shape[:batch] or (1,)
    chosen = site.known(_tuples(site, lead, x.shape[batch : batch + depth]))
    return Call("GatherND", (x, chosen), attributes({"batch_dims": batch or None}))


def _columns_in_range(call: Call, first: int) -> bool:
    """Tell whether every known index tuple of input 1 lies within the axes of input 0 from `first` on."""
    x, chosen = call.operand(0), call.operand(1).value
    if chosen is None:
        return False
    return all(in_range(chosen[..., place], x.shape[first + place]) for place in range(chosen.shape[-1]))


def _gather_nd_holds(call: Call) -> bool:
    return _columns_in_range(call, call.integer("batch_dims"))


def _reduction(site: Site) -> str | None:
    """Draw a reduction for duplicate indices that the opset allows; bool has no arithmetic."""
    choices: tuple[str | None, ...] = (None,)
    if site.opset >= 16:
        choices = (None, "none", "add", "mul") if site.dtype != "bool" else (None, "none")
    if site.opset >= 18 and site.dtype != "bool":
        choices = (*choices, "max", "min")
    return site.rng.choice(choices)


def _updates(site: Site, reduction: str | None, shape: Shape) -> Operand:
    """Return updates; factors are small, because one element may be multiplied by several."""
    return site.operand(shape=shape, within=(-2, 2) if reduction == "mul" else None)


def _scatter_elements(site: Site) -> Call:
    x = _data(site)
    rng = site.rng
    axis, written = _axis(site, x)
    reduction = _reduction(site)
    size, dtype = x.shape[axis], index_type(rng)
    shape = _index_shape(site, x, axis, size if reduction in (None, "none") else 2 * size)
    if reduction in (None, "none"):
        order = np.array([rng.random() for _ in range(math.prod(shape) // shape[axis] * size)])
        lines = order.reshape(*shape[:axis], size, *shape[axis + 1 :]).argsort(axis)
        array = np.take(lines, range(shape[axis]), axis) + size * indices(rng, shape, 1, "int64")
        array = array.astype(dtype)
    else:
        array = indices(rng, shape, size, dtype)
    options = attributes({"axis": written, "reduction": reduction})
    return Call("ScatterElements", (x, site.known(array), _updates(site, reduction, shape)), options)


def _scatter_nd(site: Site) -> Call:
    x = _data(site)
    rng = site.rng
    reduction = _reduction(site)
    depth = 1 + draw_axis(rng, x.rank)
    places, slices = math.prod(x.shape[:depth]), math.prod(x.shape[depth:])
    shape = site.shape((0, 2))
    if math.prod(shape) * slices > site.limits.max_elements or (
        places < math.prod(shape) and reduction in (None, "none")
    ):
        shape = (min(places, 1 + draw_axis(rng, 4)),)
    if reduction in (None, "none"):
        flat = np.array(rng.sample(range(places), math.prod(shape)), "int64")
        array = np.stack(np.unravel_index(flat, x.shape[:depth]), axis=-1).reshape(*shape, depth)
        if rng.random() < 0.5:
            array = np.where(indices(rng, array.shape, 1, "int64") < 0, array - np.array(x.shape[:depth]), array)
    else:
        array = _tuples(site, shape, x.shape[:depth])
    updates = _updates(site, reduction, (*shape, *x.shape[depth:]))
    return Call("ScatterND", (x, site.known(array.astype("int64")), updates), attributes({"reduction": reduction}))


def _targets(call: Call) -> Array | None:
    """Position in the flattened leading axes of each known index of a scatter; None when one is out of range."""
    x, chosen = call.operand(0), call.operand(1).value
    if chosen is None:
        return None
    if call.op == "ScatterND":
        if not _columns_in_range(call, 0):
            return None
        leading = x.shape[: chosen.shape[-1]]
        return np.asarray(np.ravel_multi_index(tuple(np.moveaxis(chosen % np.array(leading), -1, 0)), leading)).reshape(
            -1
        )
    axis = axis_of(call, x.rank)
    if not in_range(chosen, x.shape[axis]):
        return None
    places: list[Array] = list(np.indices(chosen.shape))
    places[axis] = chosen % x.shape[axis] if chosen.size else chosen
    return np.asarray(np.ravel_multi_index(tuple(places), x.shape)).reshape(-1)


def _most(targets: Array | None) -> int:
    """Largest number of updates to one element."""
    return 0 if targets is None or not targets.size else int(np.unique(targets, return_counts=True)[1].max())


def _scatter_holds(call: Call) -> bool:
    """Indices known and in range; without a reduction indices are unique, because the order of updates is undefined."""
    targets = _targets(call)
    return targets is not None and (call.text("reduction", "none") != "none" or _most(targets) <= 1)


def _scatter_bounds(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    x, updates, reduction = call.facts(0), call.facts(2), call.text("reduction", "none")
    if reduction not in ("add", "mul"):
        return (hull((x, updates)),)
    meeting = _most(_targets(call))
    whole = x.integral and updates.integral
    if reduction == "add":
        low, high = x.lo + meeting * min(0.0, updates.lo), x.hi + meeting * max(0.0, updates.hi)
        found = Bounds(low, high, whole, x.magnitude + meeting * updates.magnitude)
    else:
        factor = max(1.0, updates.magnitude)
        reach = x.magnitude * factor**meeting if meeting * math.log(factor) < 600 else 1e300
        found = Bounds(0.0 if min(x.lo, updates.lo) >= 0 else -reach, reach, whole)
    return (accumulated(found, meeting, call.operand(0).dtype),)


def _one_hot(site: Site) -> Call:
    rng = site.rng
    depth = rng.randint(1, site.limits.max_dim)
    room, most = site.limits.max_elements // depth, site.limits.max_rank - 1

    def fits(shape: Shape) -> bool:
        return 1 <= len(shape) <= most and math.prod(shape) <= room

    dtype = rng.choice(("int64", "int64", "int64", "int32", "float32"))
    if dtype == "float32":
        shape = site.shape((1, most))
        shape = shape if fits(shape) else shape[:1]
        chosen = site.known(indices(rng, shape, depth, dtype))
    else:
        chosen = site.operand(dtype, fits=fits, draw=lambda: site.shape((1, most)))
    classes = rng.choice(("int64", "int64", "int32"))
    size = scalar(site, depth, classes) if rng.random() < 0.5 else vector(site, (depth,), classes)
    axis = rng.choice((None, -1, rng.randint(-chosen.rank - 1, chosen.rank)))
    return Call("OneHot", (chosen, size, site.weight((2,))), attributes({"axis": axis}))


def _one_hot_bounds(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    return (kept(call.facts(2)),)


def _one_hot_holds(call: Call) -> bool:
    """Depth known and positive. Any integer may be an index: one outside [-depth, depth) gives off values."""
    depth = numbers(call, 1)
    return depth is not None and depth[0] > 0 and call.facts(0).integral


def _spec(
    op: str,
    sample: Sampler,
    defined: Callable[[Call], bool] = always,
    bounds: BoundsOf = carried,
    exactness: Exactness = Exactness.MOVES,
    since: int = 13,
    main: int = 0,
    shapes: ShapeRule = "inferred",
) -> OpSpec:
    return OpSpec(op, PLAIN, sample, bounds, exactness, "indexing", defined, since, main, shapes=shapes)


_INTEGER = Exactness.INTEGER


def _page_elements(call: Call) -> bool:
    """GatherElements, ScatterElements: away from the axis, an element's place in the indices is one in the data."""
    data, places = call.operand(0).shape, call.operand(1).shape
    if not has_axis(0)(call) or len(places) != len(data) or shape_of(call, 2) not in (None, places):
        return False
    at = call.integer("axis") % len(data)
    return all(inner <= outer for axis, (inner, outer) in enumerate(zip(places, data, strict=True)) if axis != at)


def _page_scatter_nd(call: Call) -> bool:
    """An update for each index, of the axes that indices do not name."""
    data, places = call.operand(0).shape, call.operand(1).shape
    if not places or places[-1] > len(data):
        return False
    return call.operand(2).shape == (*places[:-1], *data[places[-1] :])


def _page_gather_nd(call: Call) -> bool:
    """The batch axes are those of the data, and there are enough axes."""
    data, places, batch = call.operand(0).shape, call.operand(1).shape, call.integer("batch_dims")
    if not 0 <= batch < min(len(data), len(places)) or not 1 <= places[-1] <= len(data) - batch:
        return False
    return data[:batch] == places[:batch]


def _inside(node: Node, value: RunOperands) -> bool:
    data, indices = value(0), value(1)
    if data is None or indices is None or not indices.array.size:
        return True
    attribute = node.attributes.get("axis")
    axis = 0 if attribute is None else int(attribute.value)
    if not -len(data.shape) <= axis < len(data.shape):
        return False
    size = data.shape[axis]
    inside = bool(((indices.array >= -size) & (indices.array < size)).all())
    return inside and (node.op != "ScatterElements" or _reduces(node) or _distinct(indices, axis, size))


def _reduces(node: Node) -> bool:
    """Several writes to one element are defined if they are summed, multiplied, or reduced to an extreme."""
    reduction = node.attributes.get("reduction")
    return reduction is not None and reduction.value != "none"


def _distinct(indices: Tensor, axis: int, size: int) -> bool:
    """No element is written twice, because the order of writes is unspecified."""
    lines = np.moveaxis(indices.array % max(size, 1), axis, -1).reshape(-1, indices.shape[axis])
    return all(np.unique(line).size == line.size for line in lines)


def _tuples_inside(node: Node, value: RunOperands) -> bool:
    """Each tuple of GatherND and ScatterND names a place; none is written twice."""
    data, indices = value(0), value(1)
    if data is None or indices is None or not indices.array.size or not indices.shape:
        return True
    batch = node.attributes.get("batch_dims")
    sizes = np.asarray(data.shape[0 if batch is None else int(batch.value) :][: indices.shape[-1]], np.int64)
    if len(sizes) != indices.shape[-1]:
        return False
    if not ((indices.array >= -sizes) & (indices.array < sizes)).all():
        return False
    rows = (indices.array % np.maximum(sizes, 1)).reshape(-1, len(sizes))
    return node.op != "ScatterND" or _reduces(node) or len(np.unique(rows, axis=0)) == len(rows)


SPECS = (
    replace(
        _spec("Gather", _gather, _gather_holds, shapes=rules.gather),
        well_formed=has_axis(0),
        special=IEEE,
        defined_on=_inside,
        fusion="injective",
        traits=("shape-arithmetic",),
    ),
    replace(
        _spec("GatherElements", _gather_elements, _gather_holds, shapes=rules.like_second),
        well_formed=_page_elements,
        special=IEEE,
        defined_on=_inside,
        fusion="injective",
    ),
    replace(
        _spec("GatherND", _gather_nd, _gather_nd_holds, shapes=rules.gather_nd),
        well_formed=_page_gather_nd,
        special=IEEE,
        defined_on=_tuples_inside,
        fusion="injective",
    ),
    replace(
        _spec("ScatterElements", _scatter_elements, _scatter_holds, _scatter_bounds, _INTEGER, shapes=rules.like_first),
        well_formed=_page_elements,
        defined_on=_inside,
    ),
    replace(
        _spec("ScatterND", _scatter_nd, _scatter_holds, _scatter_bounds, _INTEGER, shapes=rules.like_first),
        well_formed=_page_scatter_nd,
        defined_on=_tuples_inside,
    ),
    replace(
        _spec("OneHot", _one_hot, _one_hot_holds, _one_hot_bounds, Exactness.INDEX, since=11, main=2),
        structural={"size": (1,)},
        special=IEEE,
        traits=("axes-as-written",),
    ),
)
