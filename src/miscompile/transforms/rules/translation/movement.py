"""Readers and writers of operators that move elements, and of Cast."""

import math
from collections.abc import Mapping

import numpy as np

from miscompile.base.dtypes import BY_CODE, DTYPES
from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Tensor, tensor
from miscompile.transforms.rules.kinds import ELEMENTS, Parameters, broadcast
from miscompile.transforms.rules.movement import length
from miscompile.transforms.rules.terms import fill_value
from miscompile.transforms.rules.translation.call import (
    NodeReader,
    NodeWriter,
    ReadTerm,
    TypedNode,
    WrittenNode,
    plural,
    positive,
)

MOST_INDICES = 64
"""Greatest number of indices of a Gather term; a node with more is opaque."""

BEFORE_FIRST = -(2**63) + 1
"""An end before the first element, in Slice: -1 would be the last one."""


def _cast(call: TypedNode) -> ReadTerm:
    code = call.given("to", 0)
    known = BY_CODE.get(code)
    if known is None or known.name not in ELEMENTS or not call.only("to", "saturate", "round_mode"):
        return None
    return (known.name,), call.node.inputs


def _transpose(call: TypedNode) -> ReadTerm:
    shape = call.shape(0)
    if shape is None or not call.only("perm"):
        return None
    return (tuple(call.given("perm", range(len(shape))[::-1])),), call.node.inputs


def _one_axis(default: int | None, end: int = 0) -> NodeReader:
    """Return a reader of operators with one attribute `axis`; Flatten's may equal the rank (`end`)."""

    def read(call: TypedNode) -> ReadTerm:
        shape, axis = call.shape(0), call.given("axis", default)
        if shape is None or axis is None or not call.only("axis"):
            return None
        return (positive(axis, len(shape)),), call.node.inputs

    return read


def _split(call: TypedNode) -> ReadTerm:
    shape = call.shape(0)
    if shape is None or not call.only("axis", "num_outputs"):
        return None
    axis = positive(call.given("axis", 0), len(shape))
    if not 0 <= axis < len(shape):
        return None
    count = len(call.node.outputs)
    sizes = call.known_integers(1)
    if not call.present(1):
        each = -(-shape[axis] // count)
        sizes = tuple(min(each, shape[axis] - each * place) for place in range(count))
    if sizes is None or len(sizes) != count or min(sizes) < 0:
        return None
    return (axis, sizes), call.node.inputs[:1]


def _reshape(call: TypedNode) -> ReadTerm:
    shape, asked = call.shape(0), call.known_integers(1)
    if shape is None or asked is None or not call.only("allowzero"):
        return None
    sizes = list(asked)
    if not call.given("allowzero", 0):
        if any(size == 0 and place >= len(shape) for place, size in enumerate(sizes)):
            return None
        sizes = [shape[place] if size == 0 else size for place, size in enumerate(sizes)]
    if -1 in sizes:
        rest = -math.prod(sizes)
        if rest <= 0:
            return None
        sizes[sizes.index(-1)] = math.prod(shape) // rest
    return (tuple(sizes),), call.node.inputs[:1]


def _squeeze(call: TypedNode) -> ReadTerm:
    shape = call.shape(0)
    if shape is None or not call.only("axes"):
        return None
    if not call.present(1) and "axes" not in call.node.attributes:
        return (tuple(axis for axis, size in enumerate(shape) if size == 1),), call.node.inputs[:1]
    axes = call.axes(1, "axes", len(shape))
    return None if axes is None else ((axes,), call.node.inputs[:1])


def _unsqueeze(call: TypedNode) -> ReadTerm:
    shape = call.shape(0)
    if shape is None or not call.only("axes"):
        return None
    raw = call.known_integers(1) if call.present(1) else call.given("axes", None)
    axes = None if raw is None else call.axes(1, "axes", len(shape) + len(raw))
    return None if axes is None else ((axes,), call.node.inputs[:1])


def _expand(call: TypedNode) -> ReadTerm:
    shape, asked = call.shape(0), call.known_integers(1)
    joined = None if shape is None or asked is None else broadcast(shape, asked)
    return None if joined is None else ((joined,), call.node.inputs[:1])


def _slice(call: TypedNode) -> ReadTerm:
    shape = call.shape(0)
    begins, ends = call.known_integers(1), call.known_integers(2)
    if shape is None or begins is None or ends is None or call.node.attributes:
        return None
    axes = call.known_integers(3) if call.present(3) else tuple(range(len(begins)))
    steps = call.known_integers(4) if call.present(4) else (1,) * len(begins)
    if axes is None or steps is None or not len(begins) == len(ends) == len(axes) == len(steps) or 0 in steps:
        return None
    cuts: dict[int, tuple[int, int, int]] = {}
    for axis, begin, end, step in zip(axes, begins, ends, steps, strict=True):
        place = positive(axis, len(shape))
        if place in cuts or not 0 <= place < len(shape):
            return None
        cuts[place] = canonical_cut(shape[place], begin, end, step)
    return _cuts(shape, cuts), call.node.inputs[:1]


def canonical_cut(size: int, begin: int, end: int, step: int) -> tuple[int, int, int]:
    """Return canonical begin, end and step; all empty slices have the same."""
    begin, end, step = slice(begin, end, step).indices(size)
    return (begin, end, step) if length(begin, end, step) else (0, 0, 1)


def _cuts(shape: tuple[int, ...], cuts: Mapping[int, tuple[int, int, int]]) -> tuple[tuple[int, ...], ...]:
    """Return parameters with only the axes that the Slice changes, or one unchanged axis when there is no other."""
    real = {axis: cut for axis, cut in sorted(cuts.items()) if cut != (0, shape[axis], 1)}
    chosen = real or ({0: (0, shape[0], 1)} if shape else {})
    return (tuple(chosen), *(tuple(cut[part] for cut in chosen.values()) for part in range(3)))


def _pad(call: TypedNode) -> ReadTerm:
    shape, pads = call.shape(0), call.known_integers(1)
    mode = call.given("mode", "constant")
    if shape is None or pads is None or not call.only("mode") or mode not in ("constant", "edge", "reflect"):
        return None
    if call.present(3):
        axes = call.known_integers(3)
        if axes is None or len(pads) != 2 * len(axes):
            return None
        pads = _spread(pads, tuple(positive(axis, len(shape)) for axis in axes), len(shape))
    if mode != "constant" or not call.present(2):
        return (pads, mode, 0), call.node.inputs[:1]
    value = call.known(2)
    number = None if value is None or value.dtype not in ELEMENTS else _number(value)
    if number is None:
        return None
    return (pads, mode, 0 if number == 0 else (value.dtype, number)), call.node.inputs[:1]  # type: ignore[union-attr]


def _number(value: Tensor) -> int | float | bool | None:
    return fill_value(value.dtype, value.array.view(ELEMENTS[value.dtype])) if value.array.size == 1 else None


def _spread(pads: tuple[int, ...], axes: tuple[int, ...], rank: int) -> tuple[int, ...]:
    found = [0] * (2 * rank)
    for place, axis in enumerate(axes):
        found[axis], found[rank + axis] = pads[place], pads[len(axes) + place]
    return tuple(found)


def _gather(call: TypedNode) -> ReadTerm:
    shape, value = call.shape(0), call.known(1)
    if not shape or value is None or value.array.ndim > 1 or value.array.size > MOST_INDICES or not call.only("axis"):
        return None
    axis = positive(call.given("axis", 0), len(shape))
    if not 0 <= axis < len(shape):
        return None
    size = shape[axis]
    if value.array.ndim:
        return (axis, tuple(positive(index, size) for index in value.array.tolist())), call.node.inputs[:1]
    return (axis, positive(value.array.item(), size)), call.node.inputs[:1]


READERS: Mapping[str, NodeReader] = {
    "Cast": _cast,
    "Transpose": _transpose,
    "Concat": _one_axis(None),
    "Split": _split,
    "Reshape": _reshape,
    "Flatten": _one_axis(1),
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Expand": _expand,
    "Slice": _slice,
    "Pad": _pad,
    "Gather": _gather,
    "Softmax": _one_axis(-1),
}


def _write_reshape(parameters: Parameters, opset: int) -> WrittenNode:
    shape: tuple[int, ...] = parameters[0]
    if 0 not in shape:
        return {}, (("shape", shape),)
    if opset < 14:
        raise RejectedDraft("Reshape cannot say a size of zero before opset 14")
    return {"allowzero": 1}, (("shape", shape),)


def _write_slice(parameters: Parameters, opset: int) -> WrittenNode:
    axes, begins, ends, steps = parameters
    stops = tuple(BEFORE_FIRST if end < 0 else end for end in ends)
    operands = (("starts", begins), ("ends", stops), ("axes", axes))
    return {}, operands if set(steps) == {1} else (*operands, ("steps", steps))


def _write_pad(parameters: Parameters, opset: int) -> WrittenNode:
    pads, mode, value = parameters
    attributes = {} if mode == "constant" else {"mode": mode}
    if value == 0:
        return attributes, (("pads", pads),)
    return attributes, (("pads", pads), ("padding", tensor(np.array(value[1]), value[0])))


def _write_gather(parameters: Parameters, opset: int) -> WrittenNode:
    axis, indices = parameters
    taken = indices if isinstance(indices, tuple) else Tensor("int64", np.array(indices, np.int64))
    return {"axis": axis}, (("indices", taken),)


WRITERS: Mapping[str, NodeWriter] = {
    "Cast": lambda parameters, opset: ({"to": DTYPES[parameters[0]].code}, ()),
    "Transpose": lambda parameters, opset: ({"perm": plural(parameters[0])}, ()),
    "Concat": lambda parameters, opset: ({"axis": parameters[0]}, ()),
    "Split": lambda parameters, opset: ({"axis": parameters[0]}, (("sizes", parameters[1]),)),
    "Reshape": _write_reshape,
    "Flatten": lambda parameters, opset: ({"axis": parameters[0]}, ()),
    "Squeeze": lambda parameters, opset: ({}, (("axes", parameters[0]),)),
    "Unsqueeze": lambda parameters, opset: ({}, (("axes", parameters[0]),)),
    "Expand": lambda parameters, opset: ({}, (("shape", parameters[0]),)),
    "Slice": _write_slice,
    "Pad": _write_pad,
    "Gather": _write_gather,
    "Softmax": lambda parameters, opset: ({"axis": parameters[0]}, ()),
}
