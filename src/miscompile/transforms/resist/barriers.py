"""The barriers: for each strategy, nodes whose result equals their operand.

The parameters of every function here are the twin under construction, the name and type of the value, and a number that
is unique to the edge; it adds nodes and returns the name of the result. All of them are exact to the bit for every
input, NaN, infinities and negative zero included, except where it says otherwise. Sources:
https://onnx.ai/onnx/operators/ (Where, If, Loop, Gather, Range, Reshape, Slice, Expand, Transpose, Split, Concat, Cast,
Max, Identity, MatMul).
"""

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.core.case import Dim
from miscompile.core.tensor import tensor
from miscompile.graph.model import Attribute, Graph, Node, TensorType, ValueInfo
from miscompile.transforms.resist.work import GraphAdditions

WIDER = {
    "float16": "float32", "bfloat16": "float32", "float32": "float64", "int8": "int32", "int16": "int32",
    "int32": "int64", "uint8": "int32", "uint16": "int32", "uint32": "int64", "bool": "int32",
}  # fmt: skip
"""Element types with a wider type that represents all their values."""

MOST_COLUMNS = 256
"""Longest last axis that is multiplied by an identity matrix."""


def sizes(known: TensorType) -> tuple[Dim, ...]:
    """Return the sizes of a value whose rank is known."""
    assert known.shape is not None, "a barrier that needs the rank was chosen for a value without one"
    return known.shape


def where(work: GraphAdditions, value: str, known: TensorType, salt: int) -> str:
    """Where with a run-time condition that is always true; its other operand is a number.

    The number differs between edges, because common-subexpression elimination would merge two equal barriers on one
    value. For floats the barrier counts as rounding, because ONNX Runtime's Where turns a negative zero into a positive
    one.
    """
    return work.call("Where", (work.truth(), value, work.scalar(2 + salt % 97, known.dtype)))[0]


def branch(work: GraphAdditions, value: str, known: TensorType, salt: int) -> str:
    """If with a run-time condition that always selects the first branch; the second has a tensor of the same type."""
    there = work.fresh("held_there")
    shape, otherwise = work.fresh("held_shape"), work.fresh("held_else")
    other = work.scalar(salt % 2, known.dtype)
    first = Graph(work.fresh("held_first"), (), (ValueInfo(there, known),), (Node("Identity", (value,), (there,), {}),))
    second = Graph(
        work.fresh("held_second"),
        (),
        (ValueInfo(otherwise, known),),
        (Node("Shape", (value,), (shape,)), Node("Expand", (other, shape), (otherwise,))),
    )
    bodies = {"then_branch": Attribute("graph", first), "else_branch": Attribute("graph", second)}
    return work.call("If", (work.truth(),), bodies)[0]


def loop(work: GraphAdditions, value: str, known: TensorType, salt: int) -> str:
    """Loop with a run-time trip count of one that carries the value through."""
    del salt
    turn, going, carried = work.fresh("held_turn"), work.fresh("held_going"), work.fresh("held_carried")
    still, handed = work.fresh("held_still"), work.fresh("held_handed")
    nodes = (Node("Identity", (going,), (still,)), Node("Identity", (carried,), (handed,)))
    inside = Graph(
        work.fresh("held_body"),
        (
            ValueInfo(turn, TensorType("int64", ())),
            ValueInfo(going, TensorType("bool", ())),
            ValueInfo(carried, known),
        ),
        (ValueInfo(still, TensorType("bool", ())), ValueInfo(handed, known)),
        nodes,
    )
    return work.call("Loop", (work.one(), work.truth(), value), {"body": inside})[0]


def gather(work: GraphAdditions, value: str, known: TensorType, salt: int) -> str:
    """Gather by indices 0, 1, 2, ... which are the sum of constants and a run-time value; for a scalar its one element.

    The constants start at a number that differs between edges, because two equal barriers on one value would be merged.
    """
    shape = sizes(known)
    begin = salt // 8 % 16
    start = work.call("Sub", (work.zero(), work.scalar(begin)))[0]
    if not shape:
        index = work.call("Add", (start, work.scalar(begin)))[0]
        return work.call("Gather", (work.call("Unsqueeze", (value, work.vector(0)))[0], index))[0]
    axis = salt % len(shape)
    size = shape[axis]
    if isinstance(size, int):
        plain = work.vector(*range(begin, begin + size))
    else:
        extent = work.call("Gather", (work.call("Shape", (value,))[0], work.scalar(axis)))[0]
        end = work.call("Add", (extent, work.scalar(begin)))[0]
        plain = work.call("Range", (work.scalar(begin), end, work.scalar(1)))[0]
    return work.call("Gather", (value, work.call("Add", (plain, start))[0]), {"axis": axis})[0]


def reshape(work: GraphAdditions, value: str, known: TensorType, salt: int) -> str:
    """Reshape to the value's own shape, to which a run-time 0 is added. An element 0 copies the operand's size, which
    is 0 there.
    """
    del known, salt
    return work.call("Reshape", (value, _own_shape(work, value)))[0]


def expand(work: GraphAdditions, value: str, known: TensorType, salt: int) -> str:
    """Expand to the value's own shape, to which a run-time 0 is added."""
    del known, salt
    return work.call("Expand", (value, _own_shape(work, value)))[0]


def _own_shape(work: GraphAdditions, value: str) -> str:
    return work.call("Add", (work.call("Shape", (value,))[0], work.zero()))[0]


def window(work: GraphAdditions, value: str, known: TensorType, salt: int) -> str:
    """Slice from a run-time 0 to the end along one axis."""
    axis = work.vector(salt % len(sizes(known)))
    start = work.call("Reshape", (work.zero(), work.vector(1)))[0]
    return work.call("Slice", (value, start, work.vector(2**63 - 1), axis))[0]


def transpose(work: GraphAdditions, value: str, known: TensorType, salt: int) -> str:
    """Transpose, and the inverse Transpose."""
    rank = len(sizes(known))
    turn = 1 + salt % (rank - 1)
    there = [(axis + turn) % rank for axis in range(rank)]
    back = [there.index(axis) for axis in range(rank)]
    moved = work.call("Transpose", (value,), {"perm": there})[0]
    return work.call("Transpose", (moved,), {"perm": back})[0]


def split(work: GraphAdditions, value: str, known: TensorType, salt: int) -> str:
    """Split along an axis, and Concat of the parts."""
    able = [axis for axis, size in enumerate(sizes(known)) if isinstance(size, int) and size > 1]
    axis = able[salt % len(able)]
    size = sizes(known)[axis]
    assert isinstance(size, int)
    parts = work.call("Split", (value, work.vector(1, size - 1)), {"axis": axis}, count=2)
    return work.call("Concat", parts, {"axis": axis})[0]


def cast(work: GraphAdditions, value: str, known: TensorType, salt: int) -> str:
    """Cast to a wider type and back. A NaN stays NaN, but its payload may change."""
    del salt
    wide = work.call("Cast", (value,), {"to": DTYPES[WIDER[known.dtype]].code})[0]
    return work.call("Cast", (wide,), {"to": DTYPES[known.dtype].code})[0]


def greatest(work: GraphAdditions, value: str, known: TensorType, salt: int) -> str:
    """Max of the value and itself."""
    del known, salt
    return work.call("Max", (value, value))[0]


def identity(work: GraphAdditions, value: str, known: TensorType, salt: int) -> str:
    """Identity of Identity."""
    del known, salt
    return work.call("Identity", work.call("Identity", (value,)))[0]


def product(work: GraphAdditions, value: str, known: TensorType, salt: int) -> str:
    """MatMul by an identity matrix that is computed at run time (ORTHRUS's own barrier).

    Not exact: an infinity or NaN spreads over its row (inf * 0 is NaN), and a negative zero becomes a positive one.
    Whether every element is finite is not known before a run, so this strategy requires exactness=rounding.
    """
    del salt
    shape = sizes(known)
    columns = shape[-1] if shape else 1
    assert isinstance(columns, int)
    eye = work.constant(tensor(np.eye(columns), known.dtype), f"eye_{known.dtype}_{columns}")
    matrix = work.call("Where", (work.truth(), eye, work.scalar(0, known.dtype)))[0]
    if len(shape) >= 2:
        return work.call("MatMul", (value, matrix))[0]
    axes = work.vector(*range(2 - len(shape)))
    wide = work.call("Unsqueeze", (value, axes))[0]
    return work.call("Squeeze", (work.call("MatMul", (wide, matrix))[0], axes))[0]
