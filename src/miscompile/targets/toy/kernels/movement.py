"""Kernels that move elements or make them: layout, selection, shapes. Sources are the ONNX operator pages."""

import numpy as np

from miscompile.core.tensor import Array
from miscompile.targets.toy.ir import ToyCall, ToyShape
from miscompile.targets.toy.kernels.elementwise import Args, Kernel


def reshape_target(shape: ToyShape, wanted: ToyShape, *, zero_is_size: bool = False) -> ToyShape:
    """Return the shape that Reshape gives an operand of `shape`: 0 copies a size, -1 stands for the remaining size."""
    sizes = [shape[i] if size == 0 and not zero_is_size else size for i, size in enumerate(wanted)]
    if -1 in sizes:
        rest = int(np.prod([size for size in sizes if size != -1], dtype=np.int64))
        sizes[sizes.index(-1)] = int(np.prod(shape, dtype=np.int64)) // rest if rest else 0
    return tuple(sizes)


def _reshape(call: ToyCall, args: Args) -> Array:
    x, wanted = args
    target = reshape_target(x.shape, tuple(map(int, wanted)), zero_is_size=bool(call.get("allowzero", 0)))
    return np.asarray(x.reshape(target))


def _transpose(call: ToyCall, args: Args) -> Array:
    return np.asarray(np.transpose(args[0], call.get("perm")))


def _flatten(call: ToyCall, args: Args) -> Array:
    x, axis = args[0], call.get("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return np.asarray(x.reshape(int(np.prod(x.shape[:axis], dtype=np.int64)), -1 if x.size else _size(x.shape[axis:])))


def _size(shape: ToyShape) -> int:
    return int(np.prod(shape, dtype=np.int64))


def _axes(args: Args, rank: int) -> tuple[int, ...]:
    return tuple(int(axis) % rank for axis in args[1].ravel())


def _squeeze(_: ToyCall, args: Args) -> Array:
    if len(args) < 2 or args[1] is None:
        return np.asarray(np.squeeze(args[0]))
    return np.asarray(np.squeeze(args[0], _axes(args, args[0].ndim)))


def _unsqueeze(_: ToyCall, args: Args) -> Array:
    return np.expand_dims(args[0], _axes(args, args[0].ndim + args[1].size))


def slices(starts: Array, ends: Array, axes: Array | None, steps: Array | None, rank: int) -> dict[int, slice]:
    """Return the Python slice of each axis that a Slice names; ends beyond half of int64's range are no limit."""
    found = {}
    for i, (start, end) in enumerate(zip(map(int, starts), map(int, ends), strict=True)):
        axis = int(axes[i]) % rank if axes is not None else i
        step = int(steps[i]) if steps is not None else 1
        found[axis] = (start, end, step)
    return {axis: slice(*bounds) for axis, bounds in found.items()}


def normalized(bounds: slice, size: int) -> tuple[int, int, int]:
    """Return first index, number of elements and step that ONNX's clamping rules give on an axis of `size`."""
    start, end, step = bounds.start, bounds.stop, bounds.step
    start = start + size if start < 0 else start
    end = end + size if end < 0 else end
    if step > 0:
        start, end = min(max(start, 0), size), min(max(end, 0), size)
    else:
        start, end = min(max(start, 0), size - 1), min(max(end, -1), size - 1)
    return start, max(0, -((start - end) // step)), step


def _slice(_: ToyCall, args: Args) -> Array:
    x, starts, ends, axes, steps = (*args, None, None)[:5]
    for axis, bounds in slices(starts, ends, axes, steps, x.ndim).items():
        start, count, step = normalized(bounds, x.shape[axis])
        x = np.take(x, start + step * np.arange(count), axis)
    return np.asarray(x)


def _concat(call: ToyCall, args: Args) -> Array:
    return np.concatenate(args, call.get("axis"))


def _split(call: ToyCall, args: Args) -> tuple[Array, ...]:
    x, axis = args[0], call.get("axis", 0)
    if len(args) > 1 and args[1] is not None:
        sizes = [int(size) for size in args[1]]
    else:
        count = len(call.outputs)
        chunk = -(-x.shape[axis] // count)
        sizes = [min(chunk, max(0, x.shape[axis] - i * chunk)) for i in range(count)]
    return tuple(np.split(x, np.cumsum(sizes)[:-1], axis))


def _pad(call: ToyCall, args: Args) -> Array:
    x, pads, value, axes = (*args, None, None)[:4]
    mode = call.get("mode", "constant")
    used = range(x.ndim) if axes is None else [int(axis) % x.ndim for axis in axes]
    half = len(pads) // 2
    widths = [(0, 0)] * x.ndim
    for i, axis in enumerate(used):
        widths[axis] = (int(pads[i]), int(pads[half + i]))
    crop = tuple(slice(max(0, -lo), size - max(0, -hi)) for (lo, hi), size in zip(widths, x.shape, strict=True))
    grow = [(max(0, lo), max(0, hi)) for lo, hi in widths]
    if mode == "constant":
        fill = 0 if value is None else value.reshape(())
        return np.pad(x[crop], grow, constant_values=fill)
    if mode == "reflect":
        return np.pad(x[crop], grow, mode="reflect")
    return np.pad(x[crop], grow, mode="edge") if mode == "edge" else np.pad(x[crop], grow, mode="wrap")


def _gather(call: ToyCall, args: Args) -> Array:
    return np.asarray(np.take(args[0], args[1].astype(np.int64), call.get("axis", 0)))


def _gather_checked(call: ToyCall, args: Args) -> Array:
    """The Gather that the faulty kernel choice picks; it rejects negative indices."""
    if (args[1] < 0).any():
        raise IndexError(f"index {int(args[1].min())} is out of bounds in Gather")
    return _gather(call, args)


def _gather_elements(call: ToyCall, args: Args) -> Array:
    x, axis = args[0], call.get("axis", 0)
    indices = np.where(args[1] < 0, args[1] + x.shape[axis], args[1]).astype(np.int64)
    cut = tuple(slice(None) if i == axis % x.ndim else slice(size) for i, size in enumerate(indices.shape))
    return np.take_along_axis(x[cut], indices, axis)


def _scatter_elements(call: ToyCall, args: Args) -> Array:
    x, indices, updates = args
    axis = call.get("axis", 0) % x.ndim
    result: Array = x.copy()
    places = list(np.indices(indices.shape))
    places[axis] = np.where(indices < 0, indices + x.shape[axis], indices).astype(np.int64)
    how = call.get("reduction", "none")
    at = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
    if how == "none":
        result[tuple(places)] = updates
    else:
        at[how].at(result, tuple(places), updates)
    return result


def _depth_to_space(call: ToyCall, args: Args) -> Array:
    x, block = args[0], call.get("blocksize")
    n, c, h, w = x.shape
    if call.get("mode", "DCR") == "DCR":
        parts = x.reshape(n, block, block, c // block**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        parts = x.reshape(n, c // block**2, block, block, h, w).transpose(0, 1, 4, 2, 5, 3)
    return np.asarray(parts.reshape(n, c // block**2, h * block, w * block))


def _space_to_depth(call: ToyCall, args: Args) -> Array:
    x, block = args[0], call.get("blocksize")
    n, c, h, w = x.shape
    parts = x.reshape(n, c, h // block, block, w // block, block).transpose(0, 3, 5, 1, 2, 4)
    return np.asarray(parts.reshape(n, c * block**2, h // block, w // block))


def _trilu(call: ToyCall, args: Args) -> Array:
    k = int(args[1].reshape(())) if len(args) > 1 and args[1] is not None else 0
    return (np.triu if call.get("upper", 1) else np.tril)(args[0], k)


def _expand(_: ToyCall, args: Args) -> Array:
    wanted = tuple(map(int, args[1]))
    return np.broadcast_to(args[0], np.broadcast_shapes(args[0].shape, wanted))


def _constant_of_shape(call: ToyCall, args: Args) -> Array:
    value = call.get("value")
    value = np.zeros(1, np.float32) if value is None else value
    return np.full(tuple(map(int, args[0])), value.reshape(()), value.dtype)


def _shape(call: ToyCall, args: Args) -> Array:
    return np.array(args[0].shape[call.get("start", 0) : call.get("end")], np.int64)


def _range(_: ToyCall, args: Args) -> Array:
    start, limit, delta = (arg.reshape(()) for arg in args)
    return np.arange(start, limit, delta).astype(args[0].dtype, copy=False)


def _dropout(call: ToyCall, args: Args) -> tuple[Array, ...]:
    return (args[0], np.ones(args[0].shape, np.bool_))[: len(call.outputs)]


KERNELS: dict[str, Kernel] = {
    "Identity": lambda _, args: args[0], "Dropout": _dropout, "Reshape": _reshape, "Transpose": _transpose,
    "Flatten": _flatten, "Squeeze": _squeeze, "Unsqueeze": _unsqueeze, "Slice": _slice, "Concat": _concat,
    "Split": _split, "Pad": _pad, "Gather": _gather, "CheckedGather": _gather_checked,
    "GatherElements": _gather_elements, "ScatterElements": _scatter_elements,
    "DepthToSpace": _depth_to_space, "SpaceToDepth": _space_to_depth, "Trilu": _trilu, "Expand": _expand,
    "Tile": lambda _, args: np.tile(args[0], tuple(map(int, args[1]))), "ConstantOfShape": _constant_of_shape,
    "Shape": _shape, "Size": lambda _, args: np.array(args[0].size, np.int64), "Range": _range,
}  # fmt: skip
