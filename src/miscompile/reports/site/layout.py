"""A layered layout of a directed graph without circles: edges run from top to bottom, and no two boxes overlap.

The steps are those of Sugiyama, Tagawa and Toda (1981): layers by the longest path, a point on each layer that an edge
crosses, an order within the layers by the mean place of the neighbours, and coordinates. Lengths are in SVG units.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

GAP = 24.0
"""Least distance of two boxes of a layer."""

LAYER_GAP = 44.0
"""Distance of two layers, in which the edges and their labels are."""

_SWEEPS = 8
_POINT = 14.0


@dataclass(frozen=True, slots=True)
class LayeredLayout:
    """The size of a drawing, the centre of each box, and the points of each edge, from box to box."""

    width: float
    height: float
    centres: Sequence[tuple[float, float]]
    routes: Sequence[Sequence[tuple[float, float]]]


def layered_layout(
    sizes: Sequence[tuple[float, float]], edges: Sequence[tuple[int, int]], pinned: Sequence[int] = ()
) -> LayeredLayout:
    """Return a layout of boxes of `sizes` (width, height); the `edges` lead from a box to one with a higher number.

    The boxes `pinned` have no predecessors and stand right above their first user.
    """
    layer = _layers(len(sizes), edges, pinned)
    width = [size[0] for size in sizes]
    paths: list[list[int]] = []
    for start, end in edges:  # a point is a narrow box of its own
        points = range(len(layer), len(layer) + layer[end] - layer[start] - 1)
        layer += range(layer[start] + 1, layer[end])
        width += [_POINT] * len(points)
        paths.append([start, *points, end])
    rows: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
    for box, row in enumerate(layer):
        rows[row].append(box)
    before, after = _neighbours(paths)
    _sort(rows, before, after)
    x = _columns(rows, width, before, after)
    heights = [max((sizes[box][1] for box in row if box < len(sizes)), default=0.0) for row in rows]
    tops = [sum(heights[:place]) + LAYER_GAP * place for place in range(len(rows))]
    y = [tops[row] + heights[row] / 2 for row in layer]
    height_of = [sizes[box][1] if box < len(sizes) else heights[row] for box, row in enumerate(layer)]
    routes = [_route(path, x, y, height_of) for path in paths]
    most = max((x[box] + width[box] / 2 for box in range(len(width))), default=0.0)
    height = sum(heights) + LAYER_GAP * max(len(rows) - 1, 0)
    return LayeredLayout(most, height, list(zip(x, y, strict=True))[: len(sizes)], routes)


def _layers(count: int, edges: Sequence[tuple[int, int]], pinned: Sequence[int]) -> list[int]:
    layer = [0] * count
    for start, end in sorted(edges, key=lambda edge: edge[1]):
        layer[end] = max(layer[end], layer[start] + 1)
    for box in pinned:
        users = [layer[end] for start, end in edges if start == box]
        layer[box] = max(min(users, default=1) - 1, 0)
    return layer


def _neighbours(paths: Sequence[Sequence[int]]) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    before: dict[int, list[int]] = defaultdict(list)
    after: dict[int, list[int]] = defaultdict(list)
    for path in paths:
        for upper, lower in pairwise(path):
            before[lower].append(upper)
            after[upper].append(lower)
    return before, after


def _sort(rows: list[list[int]], before: dict[int, list[int]], after: dict[int, list[int]]) -> None:
    """Order each layer by the mean place of the neighbours in the layer above and below, in turns."""
    for sweep in range(_SWEEPS):
        near = before if sweep % 2 == 0 else after
        place = {box: index for row in rows for index, box in enumerate(row)}
        for row in rows if sweep % 2 == 0 else reversed(rows):
            mean = {box: _mean([place[one] for one in near[box]], place[box]) for box in row}
            row.sort(key=lambda box: mean[box])
            place.update({box: index for index, box in enumerate(row)})


def _columns(
    rows: Sequence[Sequence[int]], width: Sequence[float], before: dict[int, list[int]], after: dict[int, list[int]]
) -> list[float]:
    """Return the x of each centre: near the mean of the neighbours, as far as the order of the layer leaves room."""
    x = [0.0] * len(width)
    for row in rows:
        _spread(row, x, width)
    for sweep in range(_SWEEPS):
        near = before if sweep % 2 == 0 else after
        for row in rows if sweep % 2 == 0 else reversed(rows):
            for box in row:
                x[box] = _mean([x[one] for one in near[box]], x[box])
            _spread(row, x, width)
    left = min((x[box] - width[box] / 2 for box in range(len(x))), default=0.0)
    return [one - left for one in x]


def _spread(row: Sequence[int], x: list[float], width: Sequence[float]) -> None:
    """Move the boxes of a layer apart until none overlap, and keep their mean."""
    wanted = _mean([x[box] for box in row], 0.0)
    for left, right in pairwise(row):
        x[right] = max(x[right], x[left] + (width[left] + width[right]) / 2 + GAP)
    shift = wanted - _mean([x[box] for box in row], 0.0)
    for box in row:
        x[box] += shift


def _route(
    path: Sequence[int], x: Sequence[float], y: Sequence[float], height: Sequence[float]
) -> list[tuple[float, float]]:
    """Return the points of an edge: it leaves below the first box, passes each layer straight, and ends at the last."""
    top = [(x[box], y[box] - height[box] / 2) for box in path]
    bottom = [(x[box], y[box] + height[box] / 2) for box in path]
    between = [point for pair in zip(top[1:-1], bottom[1:-1], strict=True) for point in pair]
    return [bottom[0], *between, top[-1]]


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
