"""Patterns that exporters write around symbolic sizes, planted on values of a finished static graph.

Sizes are written as constants here; where they depend on a symbol, shape arithmetic replaces them.
"""

import math
import random
from collections.abc import Callable, Sequence

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.attributes import attributes
from miscompile.ops.spec import Operand
from miscompile.producers.scope import Scope

_COMBINING = ("Add", "Sub", "Mul", "Max", "Min")


def plant_sizes(scope: Scope, rng: random.Random, count: int) -> list[str]:
    """Plant up to `count` patterns on values of `scope`; return the names of their results."""
    planted = []
    for _ in range(count):
        names = [name for name, operand in scope.operands.items() if operand.value is None and operand.shape]
        if not names:
            break
        pattern = rng.choice(PATTERNS)
        mark = scope.mark()
        try:
            result = pattern(scope, rng, scope.operands[rng.choice(names)])
        except RejectedDraft:
            scope.rollback(mark)
            continue
        planted.append(result.name)
    return planted


def _sizes(scope: Scope, values: Sequence[int]) -> Operand:
    return scope.new_constant(Tensor("int64", np.array(values, np.int64)))


def _scalar(scope: Scope, value: int) -> Operand:
    return scope.new_constant(Tensor("int64", np.array(value, np.int64)))


def _combined(scope: Scope, rng: random.Random, left: Operand, right: Operand) -> Operand:
    """Combine two values of one type by an operator that the target supports."""
    for op in rng.sample(_COMBINING, len(_COMBINING)):
        try:
            return scope.call(op, left, right)
        except RejectedDraft:
            continue
    raise RejectedDraft("nothing combines these values")


def _merge(scope: Scope, rng: random.Random, value: Operand) -> Operand:
    """Reshape to fewer axes; then perhaps back."""
    first = rng.randrange(value.rank)
    last = rng.randint(first + 1, value.rank)
    merged = [*value.shape[:first], math.prod(value.shape[first:last]), *value.shape[last:]]
    flat = scope.call("Reshape", value, _sizes(scope, merged))
    if rng.random() < 0.4:
        return flat
    back = scope.call("Reshape", flat, _sizes(scope, value.shape))
    return back if rng.random() < 0.5 else _combined(scope, rng, value, back)


def _split_axis(scope: Scope, rng: random.Random, value: Operand) -> Operand:
    """Split one axis in two, transpose them, and reshape to the original shape, as attention heads do."""
    axis = rng.randrange(value.rank)
    size = value.shape[axis]
    factors = [factor for factor in range(1, size + 1) if size % factor == 0]
    if not factors:
        raise RejectedDraft("an axis of size zero has no parts")
    part = rng.choice(factors)
    parts = (size // part, part) if rng.random() < 0.5 else (part, size // part)
    wide = scope.call("Reshape", value, _sizes(scope, [*value.shape[:axis], *parts, *value.shape[axis + 1 :]]))
    perm = list(range(wide.rank))
    perm[axis], perm[axis + 1] = perm[axis + 1], perm[axis]
    swapped = scope.call("Transpose", wide, attributes=attributes({"perm": perm}))
    return scope.call("Reshape", swapped, _sizes(scope, value.shape))


def _expand(scope: Scope, rng: random.Random, value: Operand) -> Operand:
    """Expand a constant to the shape of a value, or the value along a new axis."""
    if rng.random() < 0.5:
        return scope.call("Expand", value, _sizes(scope, [rng.randint(1, 3), *value.shape]))
    one = scope.new_constant(_filled(value.dtype, 1, ()))
    return _combined(scope, rng, value, scope.call("Expand", one, _sizes(scope, value.shape)))


def _filled(dtype: str, number: int, shape: tuple[int, ...]) -> Tensor:
    return tensor(np.full(shape, number, np.float64).astype(DTYPES["float32"].storage), dtype)


def _constant_of_shape(scope: Scope, rng: random.Random, value: Operand) -> Operand:
    """Combine a value with a constant of its shape."""
    fill = attributes({"value": _filled(value.dtype, rng.randint(0, 2), (1,))})
    return _combined(scope, rng, value, scope.call("ConstantOfShape", _sizes(scope, value.shape), attributes=fill))


def _slice(scope: Scope, rng: random.Random, value: Operand) -> Operand:
    """Slice an axis from its beginning to its end or to the element before."""
    axis = rng.randrange(value.rank)
    size = value.shape[axis]
    end = rng.choice((size, size, max(size - 1, 0)))
    start = rng.choice((0, 0, 1))
    bounds = [_sizes(scope, [number]) for number in (start, end, rng.choice((axis, axis - value.rank)))]
    return scope.call("Slice", value, *bounds)


def _tile(scope: Scope, rng: random.Random, value: Operand) -> Operand:
    """Repeat one axis as often as another is long."""
    counts = [1] * value.rank
    counts[rng.randrange(value.rank)] = min(4, rng.choice(value.shape))
    return scope.call("Tile", value, _sizes(scope, counts))


def _range(scope: Scope, rng: random.Random, value: Operand) -> Operand:
    """Combine a value with a Range over its last axis."""
    steps = scope.call("Range", _scalar(scope, 0), _scalar(scope, value.shape[-1]), _scalar(scope, 1))
    if value.dtype != "int64":
        steps = scope.call("Cast", steps, attributes=attributes({"to": DTYPES[value.dtype].code}))
    return _combined(scope, rng, value, steps)


PATTERNS: tuple[Callable[[Scope, random.Random, Operand], Operand], ...] = (
    _merge, _merge, _split_axis, _expand, _constant_of_shape, _slice, _tile, _range,
)  # fmt: skip
"""Each takes a scope, a random stream and the value to plant on, and returns its result; raises RejectedDraft."""
