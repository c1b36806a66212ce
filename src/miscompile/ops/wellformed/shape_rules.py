"""Rules of operators that move, select, slice or reduce elements: axes, sizes, permutations.

Source of each rule: the operator's page of the ONNX documentation.
"""

import math

from miscompile.ops.spec import Call
from miscompile.ops.wellformed.rules import (
    CallRules,
    broadcasts_to,
    different_axes,
    has_axis,
    numbers_of,
    scalars,
    shape_of,
)


def _listed_axes(call: Call) -> bool:
    """Reductions, Squeeze: the axes, an attribute or an input, are different axes of the data."""
    axes = call.integers("axes") if "axes" in call.attributes else numbers_of(call, 1)
    return axes is None or different_axes(axes, call.operand(0).rank)


def _elements(call: Call) -> bool:
    """GatherElements, ScatterElements: away from the axis, an element's place in the indices is one in the data."""
    data, places = call.operand(0).shape, call.operand(1).shape
    if not has_axis(0)(call) or len(places) != len(data) or shape_of(call, 2) not in (None, places):
        return False
    at = call.integer("axis") % len(data)
    return all(inner <= outer for axis, (inner, outer) in enumerate(zip(places, data, strict=True)) if axis != at)


def _prelu(call: Call) -> bool:
    return broadcasts_to(call.operand(1).shape, call.operand(0).shape)


def _dropout(call: Call) -> bool:
    """The ratio is a scalar in [0, 1), and the call is in inference mode."""
    if not scalars(1, 2)(call) or call.has(2):
        return False
    return not call.has(1) or call.facts(1).inside(0.0, 0.999)


def _unsqueeze(call: Call) -> bool:
    axes = call.integers("axes") if "axes" in call.attributes else numbers_of(call, 1)
    return axes is None or different_axes(axes, call.operand(0).rank + len(axes))


def _transpose(call: Call) -> bool:
    rank = call.operand(0).rank
    return sorted(call.integers("perm", range(rank))) == list(range(rank))


def _reshape(call: Call) -> bool:
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


def _split(call: Call) -> bool:
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


def _expand(call: Call) -> bool:
    sizes = numbers_of(call, 1)
    return call.operand(1).rank == 1 and (sizes is None or min(sizes, default=0) >= 0)


def _tile(call: Call) -> bool:
    counts = numbers_of(call, 1)
    return call.operand(1).shape == (call.operand(0).rank,) and (counts is None or min(counts, default=0) >= 0)


def _blocks(call: Call) -> bool:
    """DepthToSpace and SpaceToDepth: images whose depth, or height and width, the block size divides."""
    shape, block = call.operand(0).shape, call.integer("blocksize")
    if len(shape) != 4 or block < 1:
        return False
    if call.op == "DepthToSpace":
        return shape[1] % block**2 == 0
    return shape[2] % block == 0 and shape[3] % block == 0


def _slice(call: Call) -> bool:
    """One start, end and step for each axis; no axis twice; no step of zero."""
    count, rank = call.operand(1).shape, call.operand(0).rank
    if len(count) != 1 or any(shape_of(call, place) not in (None, count) for place in (2, 3, 4)):
        return False
    axes = numbers_of(call, 3) if call.has(3) else tuple(range(count[0])) if count[0] == rank else (rank,)
    return (axes is None or different_axes(axes, rank)) and 0 not in (numbers_of(call, 4) or ())


def _pad(call: Call) -> bool:
    rank = call.operand(0).rank
    axes = numbers_of(call, 3) if call.has(3) else tuple(range(rank))
    if axes is None or not different_axes(axes, rank) or not scalars(2)(call):
        return False
    return call.operand(1).shape == (2 * len(axes),)


def _top_k(call: Call) -> bool:
    count = numbers_of(call, 1)
    if call.operand(1).shape != (1,) or not has_axis(-1)(call):
        return False
    return count is None or 0 <= count[0] <= call.operand(0).shape[call.integer("axis", -1)]


def _cum_sum(call: Call) -> bool:
    axis, rank = numbers_of(call, 1), call.operand(0).rank
    return call.operand(1).rank == 0 and (axis is None or -rank <= axis[0] < rank)


_LAST, _FIRST = has_axis(-1), has_axis(0)

SHAPE_RULES: CallRules = {
    "Clip": scalars(1, 2),
    "Range": scalars(0, 1, 2),
    "PRelu": _prelu,
    "Dropout": _dropout,
    "Transpose": _transpose,
    "Reshape": _reshape,
    "Squeeze": _listed_axes,
    "Unsqueeze": _unsqueeze,
    "Flatten": has_axis(1, beyond=True),
    "Expand": _expand,
    "Tile": _tile,
    "Split": _split,
    "DepthToSpace": _blocks,
    "SpaceToDepth": _blocks,
    "Slice": _slice,
    "Pad": _pad,
    "Concat": _FIRST,
    "Gather": _FIRST,
    "GatherElements": _elements,
    "ScatterElements": _elements,
    **dict.fromkeys(("ArgMax", "ArgMin"), _FIRST),
    "EyeLike": lambda call: call.operand(0).rank == 2,
    "ConstantOfShape": lambda call: call.operand(0).rank == 1,
    "MatMul": lambda call: bool(call.operand(0).rank and call.operand(1).rank),
    "TopK": _top_k,
    "CumSum": _cum_sum,
    **dict.fromkeys(
        (
            "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
            "ReduceLogSumExp", "ReduceSumSquare",
        ),
        _listed_axes,
    ),
}  # fmt: skip
