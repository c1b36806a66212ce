"""Elements of a result that are written several times: libraries do not specify which write wins.

Each function takes an instance and returns for each element of its first result whether it is unspecified. Several
writes of equal values are specified where a library only says that any of the writes may win.
"""

import math
from collections.abc import Callable, Mapping

import numpy as np

from miscompile.core.tensor import Array
from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn, Held, Value
from miscompile.oracles.unspecified.operands import numbers, operand

IndexedElements = Callable[[Instance], Array]


def _scattered(instance: Instance) -> Array:
    """Single elements written along an axis: torch's scatter, ONNX' ScatterElements."""
    if instance.library == "onnx":
        target, index, values = (operand(instance, place) for place in range(3))
        axis, added = instance.kwargs.get("axis", 0), instance.kwargs.get("reduction", "none") != "none"
    else:
        target, axis, index = operand(instance, 0, "input"), operand(instance, 1, "dim"), operand(instance, 2, "index")
        values, added = operand(instance, 3, "src", "value"), instance.kwargs.get("reduce") is not None
    grid, along, at = _grid(target), int(str(axis)), _array(index)
    if added:
        return np.zeros(grid.shape, bool)
    at = np.where(at < 0, at + grid.shape[along], at)
    window = tuple(slice(None) if place == along % grid.ndim else slice(size) for place, size in enumerate(at.shape))
    places = np.take_along_axis(grid[window], at, along)
    if instance.library == "onnx":
        return _met(grid, places, None)
    written = _array(values)
    return _met(grid, places, written[tuple(map(slice, at.shape))] if written.ndim else written)


def _scattered_rows(instance: Instance) -> Array:
    """Slices written at rows of indices: ONNX' ScatterND, Keras' scatter and scatter_update."""
    if instance.operator == "scatter":  # into zeros; one back end adds the values, another overwrites
        index, shape = operand(instance, 0, "indices"), numbers(operand(instance, 2, "shape"))
        grid, values = np.arange(math.prod(_sizes(shape))).reshape(_sizes(shape)), None
    else:
        target, index = operand(instance, 0, "inputs"), operand(instance, 1, "indices")
        grid = _grid(target)
        values = _array(operand(instance, 2, "updates")) if instance.library == "keras" else None
    if instance.kwargs.get("reduction") not in (None, "none"):
        return np.zeros(grid.shape, bool)
    return _met(grid, grid[tuple(np.moveaxis(_array(index), -1, 0))], values)


def _put(instance: Instance) -> Array:
    """Single elements written as if there were one axis: torch's put."""
    grid, index = _grid(operand(instance, 0, "input")), _array(operand(instance, 1, "index"))
    if operand(instance, 3, "accumulate", default=False):
        return np.zeros(grid.shape, bool)
    return _met(grid, grid.reshape(-1)[index], _array(operand(instance, 2, "source")))


def _copied(instance: Instance) -> Array:
    """Slices written along an axis: torch's index_copy."""
    grid, along = _grid(operand(instance, 0, "input")), int(str(operand(instance, 1, "dim")))
    index, source = _array(operand(instance, 2, "index")), _array(operand(instance, 3, "source", "tensor"))
    return _met(grid, np.take(grid, index.reshape(-1), along), source)


def _put_by_index(instance: Instance) -> Array:
    """Elements written at indices from several tensors: torch's index_put."""
    grid, index = _grid(operand(instance, 0, "input")), operand(instance, 1, "indices")
    if operand(instance, 3, "accumulate", default=False):
        return np.zeros(grid.shape, bool)
    assert isinstance(index, list | tuple)
    masks = [slice(None) if one is None else _array(one) for one in index]
    at = tuple(one.astype(bool) if isinstance(one, np.ndarray) and one.dtype == np.uint8 else one for one in masks)
    return _met(grid, grid[at], _array(operand(instance, 2, "values")))


def _grid(target: Value) -> Array:
    """Return the number of each element of a tensor, in its shape."""
    assert isinstance(target, Held | Drawn)
    shape = target.tensor.shape if isinstance(target, Held) else target.shape
    return np.arange(math.prod(shape)).reshape(shape)


def _sizes(shape: Array | None) -> tuple[int, ...]:
    assert shape is not None
    return tuple(int(size) for size in shape.reshape(-1))


def _array(value: Value) -> Array:
    found = numbers(value)
    assert found is not None
    return found


def _met(grid: Array, places: Array, values: Array | None) -> Array:
    """Mark each element of `grid` that `places` writes several times; with `values`, with unequal values."""
    flat, count = places.reshape(-1), grid.size
    if values is None:
        return np.asarray(np.bincount(flat, minlength=count) > 1).reshape(grid.shape)
    if values.size == places.size:
        values = values.reshape(places.shape)
    _, kinds = np.unique(np.broadcast_to(values, places.shape), return_inverse=True)
    different = np.unique(np.stack([flat, np.reshape(kinds, -1)]), axis=1)[0]
    return np.asarray(np.bincount(different, minlength=count) > 1).reshape(grid.shape)


ELEMENTS: Mapping[str, IndexedElements] = {
    "scattered to twice": _scattered,
    "scattered to twice by rows": _scattered_rows,
    "put twice": _put,
    "copied to twice": _copied,
    "put twice by index": _put_by_index,
}


def met_twice(name: str, instance: Instance) -> Array | None:
    """Return which elements of the first result are unspecified; None if unknown, so that all may be.

    `name` is one of `ELEMENTS`.
    """
    try:
        return ELEMENTS[name](instance)
    except (AssertionError, IndexError, ValueError, TypeError):  # indices that a library interprets in its own way
        return None
