"""Conditions on operands that hold indices, labels or lengths."""

import math

import numpy as np

from miscompile.oracles.unspecified.pages.node import NodeView, PageCondition


def indices(default: int | None) -> tuple[str, PageCondition]:
    """Return the condition that indices along an axis are within the first operand; `default` is that of the axis."""

    def holds(node: NodeView) -> bool:
        shape = node.shape(0) or ()
        axis = node.whole("axis", 0 if default is None else default)
        if not -len(shape) <= axis < len(shape):
            return False
        return all(-shape[axis] <= item < shape[axis] for item in node.numbers(1))

    return "indices are within the size of the axis", holds


def tuples(node: NodeView) -> bool:
    """Tell whether each tuple of indices is within the first operand."""
    indices, shape = node.tensor(1), node.shape(0) or ()
    if indices is None or not indices.shape:
        return False
    batch, width = node.whole("batch_dims", 0), indices.shape[-1]
    sizes = np.array(shape[batch : batch + width])
    found = indices.numbers().reshape(-1, width) if width else indices.numbers().reshape(0, 0)
    return len(sizes) == width and bool(((found >= -sizes) & (found < sizes)).all())


def updates(node: NodeView) -> bool:
    """Tell whether updates have the shape of the slices that the indices name."""
    shape, indices, updates = node.shape(0), node.shape(1), node.shape(2)
    return shape is None or not indices or updates == (*indices[:-1], *shape[indices[-1] :])


def same_rank(node: NodeView) -> bool:
    """Tell whether the first three operands have one rank."""
    shapes = [node.shape(place) for place in range(3)]
    return len({len(shape) for shape in shapes if shape is not None}) == 1


def inside(node: NodeView) -> bool:
    """Tell whether the sizes of indices are within those of the first operand, apart from the axis."""
    shape, indices = node.shape(0) or (), node.shape(1) or ()
    axis = node.whole("axis", 0) % max(len(shape), 1)
    return len(shape) == len(indices) and all(
        one <= other for place, (one, other) in enumerate(zip(indices, shape, strict=True)) if place != axis
    )


def labels(node: NodeView) -> bool:
    """Tell whether the labels are classes, or the ignored one."""
    shape = node.shape(0) or (0, 0)
    ignored = node.instance.kwargs.get("ignore_index")
    return len(shape) > 1 and all(0 <= item < shape[1] or item == ignored for item in node.numbers(1))


def unpooled(node: NodeView) -> bool:
    """Tell whether the indices are distinct and within the result."""
    size = math.prod(int(item) for item in node.numbers(2)) if node.tensor(2) is not None else math.inf
    found = node.numbers(1)
    return all(0 <= item < size for item in found) and len(set(found)) == len(found)


def batches(node: NodeView) -> bool:
    """Tell whether the third operand, where it is read, holds numbers of rows of the first one."""
    size = (node.shape(0) or (0,))[0]
    return all(0 <= item < size for item in node.numbers(2))


def rotated(node: NodeView) -> bool:
    """Tell whether the positions are within the caches."""
    cache = node.shape(1) or (0,)
    return all(0 <= item < cache[0] for item in node.numbers(3))


def positions(node: NodeView) -> bool:
    """Tell whether there is a position for each element of the sequence, of each batch."""
    shape, given = node.shape(0) or (), node.shape(3)
    sequence = shape[-2] if len(shape) > 2 else 0
    return given is None or given == (*shape[:1], sequence)


def split(node: NodeView) -> bool:
    """Tell whether the lengths of a split are positive, or add up to the size of the axis."""
    given, shape, axis = node.tensor(1), node.shape(0) or (), node.whole("axis", 0)
    if given is None or not -len(shape) <= axis < len(shape):
        return given is None
    numbers = node.numbers(1)
    if not given.shape:
        return numbers[0] > 0
    return all(item >= 0 for item in numbers) and sum(numbers) == shape[axis]


def grams(node: NodeView) -> bool:
    """Tell whether the pool holds whole n-grams of each length, as many as there are indices."""
    counts = node.whole_list("ngram_counts")
    pool = node.instance.kwargs.get("pool_int64s") or node.instance.kwargs.get("pool_strings") or ()
    if not isinstance(pool, tuple | list) or not counts or counts[0] != 0:
        return False
    ends = [*counts[1:], len(pool)]
    sizes = [end - begin for begin, end in zip(counts, ends, strict=True)]
    if any(size < 0 or size % (place + 1) for place, size in enumerate(sizes)):
        return False
    grams = [
        tuple(pool[begin + at : begin + at + place + 1])
        for place, (begin, size) in enumerate(zip(counts, sizes, strict=True))
        for at in range(0, size, place + 1)
    ]
    return len(set(grams)) == len(grams) == len(node.whole_list("ngram_indexes"))


def reversed_(node: NodeView) -> bool:
    """Tell whether the axes are 0 and 1, and the lengths within the sequence."""
    shape, batch, time = node.shape(0) or (), node.whole("batch_axis", 1), node.whole("time_axis", 0)
    if {batch, time} != {0, 1} or len(shape) < 2 or node.shape(1) != (shape[batch],):
        return False
    return all(0 <= item <= shape[time] for item in node.numbers(1))
