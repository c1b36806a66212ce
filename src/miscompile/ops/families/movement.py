"""Operators that give a tensor another shape, or its elements another order.

Sources: the operator pages of the ONNX documentation. Every output holds elements of the operands and nothing else.
"""

import math
import random
from dataclasses import replace

from miscompile.base.dtypes import PLAIN
from miscompile.graph.attributes import attributes
from miscompile.graph.model import TensorType
from miscompile.ops import output_shapes as rules
from miscompile.ops.facts import Bounds, Exactness
from miscompile.ops.page_rules import different_axes, has_axis, listed_axes, numbers_of
from miscompile.ops.shapes import draw_size
from miscompile.ops.spec import BoundsOf, Call, OpSpec, OutputShapes, Sampler, Shape, Site
from miscompile.ops.special import IEEE
from miscompile.ops.structural import carried, draw_axes, draw_axis, hull, integers_of, signed, vector


def _factors(rng: random.Random, count: int, rank: int) -> list[int]:
    """Draw `rank` sizes whose product is `count`, at least 1; `rank` is at least 1."""
    sizes = [1] * rank
    divisor = 2
    while count > 1:
        if divisor * divisor > count:
            divisor = count
        if count % divisor:
            divisor += 1
            continue
        sizes[draw_axis(rng, rank)] *= divisor
        count //= divisor
    return sizes


def _regroup(rng: random.Random, shape: Shape, max_rank: int) -> list[int]:
    """Draw the sizes of a reshaped tensor with the elements of `shape`, none of whose sizes is zero."""
    sizes = list(shape)
    chance = rng.random()
    if chance < 0.35 and len(sizes) > 1:
        place = draw_axis(rng, len(sizes) - 1)
        sizes[place : place + 2] = [sizes[place] * sizes[place + 1]]
    elif chance < 0.6 and 0 < len(sizes) < max_rank:
        place = draw_axis(rng, len(sizes))
        sizes[place : place + 1] = _factors(rng, sizes[place], 2)
    elif chance < 0.7 and math.prod(sizes) == 1:
        sizes = []
    elif chance < 0.95:
        sizes = _factors(rng, math.prod(sizes), 1 + draw_axis(rng, max_rank))
    return sizes


def _reshape(site: Site) -> Call:
    x = site.operand()
    rng = site.rng
    if 0 in x.shape:
        return _reshape_empty(site, x.shape, Call("Reshape", (x,)))
    target = _regroup(rng, x.shape, site.limits.max_rank)
    written = list(target)
    if rng.random() < 0.3:
        written = [0 if i < x.rank and size == x.shape[i] else size for i, size in enumerate(target)]
    if target and rng.random() < 0.4:
        written[draw_axis(rng, len(target))] = -1
    chance = rng.random()
    allow = None if site.opset < 14 or chance < 0.7 else int(chance < 0.85 and 0 not in written)
    return Call("Reshape", (x, vector(site, written)), attributes({"allowzero": allow}))


def _reshape_empty(site: Site, shape: Shape, call: Call) -> Call:
    """Reshape a tensor without elements: a written zero means zero with allowzero, else a copied size."""
    target = list(shape)
    allow = None
    if site.opset >= 14 and site.rng.random() < 0.6:
        site.rng.shuffle(target)
        allow = 1
    elif site.rng.random() < 0.5:
        target = [draw_size(site.rng, site.limits) if size else 0 for size in shape]
    return Call("Reshape", (*call.inputs, vector(site, target)), attributes({"allowzero": allow}))


def _flatten(site: Site) -> Call:
    x = site.operand()
    axis = site.rng.randint(-x.rank, x.rank)
    given = None if x.rank and site.rng.random() < 0.25 else axis
    return Call("Flatten", (x,), attributes({"axis": given}))


def _squeeze(site: Site) -> Call:
    def draw() -> Shape:
        sizes = list(site.shape((0, site.limits.max_rank - 1)))
        sizes.insert(draw_axis(site.rng, len(sizes) + 1), 1)
        return tuple(sizes)

    x = site.operand(fits=lambda shape: 1 in shape, draw=draw)
    if site.rng.random() < 0.3:
        return Call("Squeeze", (x,))
    ones = [axis for axis, size in enumerate(x.shape) if size == 1]
    chosen = [signed(site.rng, ones[i], x.rank) for i in draw_axes(site.rng, len(ones))]
    return Call("Squeeze", (x, vector(site, chosen)))


def _unsqueeze(site: Site) -> Call:
    x = site.operand(ranks=(0, site.limits.max_rank - 1))
    rank = x.rank + 1 + draw_axis(site.rng, site.limits.max_rank - x.rank)
    axes = site.rng.sample(range(rank), rank - x.rank)
    return Call("Unsqueeze", (x, vector(site, [signed(site.rng, axis, rank) for axis in axes])))


def _transpose(site: Site) -> Call:
    x = site.operand()
    if x.rank == 0 or site.rng.random() < 0.15:
        return Call("Transpose", (x,))
    return Call("Transpose", (x,), attributes({"perm": site.rng.sample(range(x.rank), x.rank)}))


def _expand(site: Site) -> Call:
    x = site.operand()
    rng, room = site.rng, site.limits.max_elements // max(1, math.prod(x.shape))
    target = []
    for size in x.shape:
        wanted = size
        if size == 1 and rng.random() < 0.6:
            wanted = min(draw_size(rng, site.limits), room)
            room //= max(1, wanted)
        elif rng.random() < 0.2:
            wanted = 1
        target.append(wanted)
    if x.rank < site.limits.max_rank and rng.random() < 0.35:
        target.insert(0, min(draw_size(rng, site.limits), room))
    elif rng.random() < 0.25:
        target = target[draw_axis(rng, x.rank + 1) :]
    return Call("Expand", (x, vector(site, target)))


def _tile(site: Site) -> Call:
    x = site.operand()
    room = site.limits.max_elements // max(1, math.prod(x.shape))
    repeats = []
    for _ in x.shape:
        count = 0 if site.rng.random() < site.limits.zero_size else min(site.rng.choice((1, 1, 2, 2, 3)), max(1, room))
        room //= max(1, count)
        repeats.append(count)
    return Call("Tile", (x, vector(site, repeats)))


def _concat(site: Site) -> Call:
    x = site.operand(ranks=(1, site.limits.max_rank))
    axis = draw_axis(site.rng, x.rank)
    room = site.limits.max_elements - math.prod(x.shape)
    stride = math.prod(x.shape[:axis] + x.shape[axis + 1 :])
    parts = [x]
    for _ in range(draw_axis(site.rng, 4)):

        def fits(shape: Shape, room: int = room) -> bool:
            alike = len(shape) == x.rank and shape[:axis] == x.shape[:axis] and shape[axis + 1 :] == x.shape[axis + 1 :]
            return alike and math.prod(shape) <= room

        def draw(room: int = room) -> Shape:
            size = min(draw_size(site.rng, site.limits), room // max(1, stride))
            return (*x.shape[:axis], size, *x.shape[axis + 1 :])

        again = site.rng.random() < 0.1 and fits(x.shape)
        part = x if again else site.operand(fits=fits, draw=draw)
        room -= math.prod(part.shape)
        parts.append(part)
    return Call("Concat", tuple(parts), attributes({"axis": signed(site.rng, axis, x.rank)}))


def _concat_bounds(call: Call, _: tuple[TensorType, ...]) -> tuple[Bounds, ...]:
    return (hull([call.facts(index) for index in range(len(call.inputs))]),)


def _split(site: Site) -> Call:
    x = site.operand(ranks=(1, site.limits.max_rank))
    rng = site.rng
    axis = draw_axis(rng, x.rank)
    size = x.shape[axis]
    count = 1 + draw_axis(rng, 4 if rng.random() < 0.05 else max(1, min(4, size)))
    written = None if axis == 0 and rng.random() < 0.5 else signed(rng, axis, x.rank)
    chunk = -(-size // count)
    even = size % count == 0 if site.opset < 18 else size > (count - 1) * chunk
    if even and rng.random() < 0.5:
        number = None if site.opset < 18 else count
        return Call("Split", (x,), attributes({"axis": written, "num_outputs": number}), outputs=count)
    cuts = sorted(rng.randint(0, size) for _ in range(count - 1))
    if size >= count and rng.random() < 0.9:
        cuts = sorted(rng.sample(range(1, size), count - 1))
    parts = [after - before for before, after in zip([0, *cuts], [*cuts, size], strict=True)]
    return Call("Split", (x, vector(site, parts)), attributes({"axis": written}), outputs=count)


def _image(site: Site, shape: Shape) -> bool:
    return len(shape) == 4 and 0 < math.prod(shape) <= site.limits.max_elements


def _depth_to_space(site: Site) -> Call:
    block = site.rng.choice((1, 2, 2, 2, 3))

    def fits(shape: Shape) -> bool:
        return _image(site, shape) and shape[1] % block**2 == 0

    def draw() -> Shape:
        batch, depth, height, width = site.shape((4, 4))
        return batch, block**2 * (1 + depth % 3), height, width

    x = site.operand(fits=fits, draw=draw)
    mode = site.rng.choice((None, "DCR", "CRD"))
    return Call("DepthToSpace", (x,), attributes({"blocksize": block, "mode": mode}))


def _space_to_depth(site: Site) -> Call:
    block = site.rng.choice((1, 2, 2, 2, 3))

    def fits(shape: Shape) -> bool:
        return _image(site, shape) and shape[2] % block == 0 and shape[3] % block == 0

    def draw() -> Shape:
        batch, depth, height, width = site.shape((4, 4))
        return batch, depth, block * (1 + height % 3), block * (1 + width % 3)

    x = site.operand(fits=fits, draw=draw)
    return Call("SpaceToDepth", (x,), attributes({"blocksize": block}))


def _move(op: str, sample: Sampler, shapes: OutputShapes, bounds: BoundsOf = carried) -> OpSpec:
    return OpSpec(op, PLAIN, sample, bounds, Exactness.MOVES, "movement", shapes=shapes, special=IEEE)


def _page_unsqueeze(call: Call) -> bool:
    axes = call.integers("axes") if "axes" in call.attributes else numbers_of(call, 1)
    return axes is None or different_axes(axes, call.operand(0).rank + len(axes))


def _page_transpose(call: Call) -> bool:
    rank = call.operand(0).rank
    return sorted(call.integers("perm", range(rank))) == list(range(rank))


def _page_reshape(call: Call) -> bool:
    """The number of elements stays; a size written as -1 follows from the others."""
    shape, written = call.operand(0).shape, numbers_of(call, 1)
    if written is None:
        return True
    copies = not call.integer("allowzero")
    if any(size < -1 for size in written) or written.count(-1) > 1 or (not copies and {0, -1} <= set(written)):
        return False
    if copies and any(size == 0 and place >= len(shape) for place, size in enumerate(written)):
        return False
    sizes = [shape[place] if size == 0 and copies else size for place, size in enumerate(written)]
    rest = math.prod(size for size in sizes if size >= 0)
    if -1 in written:
        return rest > 0 and math.prod(shape) % rest == 0
    return rest == math.prod(shape)


def _page_split(call: Call) -> bool:
    """Sizes add up to the axis; equal parts, of which from 18 on the last may be smaller, are none of them empty."""
    x, parts = call.operand(0), numbers_of(call, 1)
    if not has_axis(0)(call) or call.integer("num_outputs", call.outputs) != call.outputs:
        return False
    size = x.shape[call.integer("axis")]
    if call.has(1):
        given = call.operand(1).shape == (call.outputs,) and "num_outputs" not in call.attributes
        return given and (parts is None or (min(parts) >= 0 and sum(parts) == size))
    chunk = -(-size // call.outputs)
    return size % call.outputs == 0 or ("num_outputs" in call.attributes and size > (call.outputs - 1) * chunk)


def _page_expand(call: Call) -> bool:
    sizes = numbers_of(call, 1)
    return call.operand(1).rank == 1 and (sizes is None or min(sizes, default=0) >= 0)


def _page_tile(call: Call) -> bool:
    counts = numbers_of(call, 1)
    return call.operand(1).shape == (call.operand(0).rank,) and (counts is None or min(counts, default=0) >= 0)


def _page_blocks(call: Call) -> bool:
    """DepthToSpace and SpaceToDepth: images whose depth, or height and width, the block size divides."""
    shape, block = call.operand(0).shape, call.integer("blocksize")
    if len(shape) != 4 or block < 1:
        return False
    if call.op == "DepthToSpace":
        return shape[1] % block**2 == 0
    return shape[2] % block == 0 and shape[3] % block == 0


def _expanded(call: Call) -> tuple[Shape, ...]:
    """The shapes of the data and, if it is known, of the result, which broadcast against each other."""
    x, shape = call.operand(0), call.operand(1)
    return (x.shape, shape.shape if shape.value is None else integers_of(shape.value))


SPECS = (
    replace(
        _move("Reshape", _reshape, rules.reshape),
        well_formed=_page_reshape,
        structural={"shape": (1,)},
        fusion="injective",
        traits=("holds-sizes", "shape-arithmetic"),
    ),
    replace(
        _move("Flatten", _flatten, rules.flatten),
        well_formed=has_axis(1, beyond=True),
        fusion="injective",
        traits=("axes-as-written", "shape-arithmetic"),
    ),
    replace(
        _move("Squeeze", _squeeze, rules.squeeze),
        well_formed=listed_axes,
        structural={"shape": (1,)},
        fusion="injective",
        traits=("shape-arithmetic",),
    ),
    replace(
        _move("Unsqueeze", _unsqueeze, rules.unsqueeze),
        well_formed=_page_unsqueeze,
        structural={"shape": (1,)},
        fusion="injective",
        traits=("axes-as-written", "shape-arithmetic"),
    ),
    replace(
        _move("Transpose", _transpose, rules.transpose),
        well_formed=_page_transpose,
        fusion="injective",
        traits=("shape-arithmetic",),
    ),
    replace(
        _move("Expand", _expand, rules.expand),
        well_formed=_page_expand,
        structural={"shape": (1,)},
        broadcasting=_expanded,
        fusion="broadcast",
        traits=("holds-sizes", "shape-arithmetic"),
    ),
    replace(
        _move("Tile", _tile, rules.tile),
        well_formed=_page_tile,
        structural={"shape": (1, 2)},
        fusion="injective",
        traits=("holds-sizes",),
    ),
    replace(
        _move("Concat", _concat, rules.concat, _concat_bounds),
        well_formed=has_axis(0),
        fusion="injective",
        traits=("shape-arithmetic", "weights-as-inputs"),
    ),
    replace(
        _move("Split", _split, rules.split),
        well_formed=_page_split,
        structural={"shape": (1,)},
        fusion="injective",
        traits=("holds-sizes",),
    ),
    replace(_move("DepthToSpace", _depth_to_space, rules.depth_to_space), well_formed=_page_blocks, fusion="injective"),
    replace(_move("SpaceToDepth", _space_to_depth, rules.space_to_depth), well_formed=_page_blocks, fusion="injective"),
)
