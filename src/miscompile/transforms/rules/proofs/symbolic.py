"""Evaluation of the sides of a rule on symbolic elements, for concrete shapes and parameters.

Operators that move elements are evaluated by the language's own kernels, on arrays of element numbers: these kernels
never look at the values. Elementwise operators are applied number by number, with broadcasting. Reductions, products,
convolutions and pools become elements with all of their operands.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from miscompile.core.tensor import Array
from miscompile.transforms.rules.elementwise import BINARY, COMPARISON, UNARY
from miscompile.transforms.rules.kinds import Parameters, TermType
from miscompile.transforms.rules.layers import pad_spatially, window_view
from miscompile.transforms.rules.movement import constant_array
from miscompile.transforms.rules.proofs.elements import ElementTable
from miscompile.transforms.rules.rule import Bindings, TermPattern, Variable, symbol_of, type_of
from miscompile.transforms.rules.terms import LANGUAGE

_ABSENT = -1
"""The number that stands for padding in the windows of a pool."""

Sorts: TypeAlias = Mapping[str, str]
"""The sort of each element type: itself, or the open one."""


def _plain(value: Any, truth: bool) -> bool | int | float:  # noqa: ANN401 - a number, of Python or numpy
    """Return a number in one form only: as an integer where it is one, except for -0.0."""
    number = value.item() if isinstance(value, np.generic) else value
    if truth:
        return bool(number)
    real = float(number)
    negative_zero = real == 0 and math.copysign(1, real) < 0
    return int(number) if real.is_integer() and not negative_zero else real


@dataclass(frozen=True, slots=True)
class Lifted:
    """The operands of one operator: numbers, types, the type of the result, its sort, and the table."""

    table: ElementTable
    operands: tuple[Array, ...]
    result: TermType
    sorts: Sorts

    @property
    def sort(self) -> str:
        """The sort of the result."""
        return self.sorts.get(self.result.dtype, self.result.dtype)

    def fill(self, value: object) -> int:
        """Return the number of a constant of the result's type."""
        return self.table.add("Constant", self.sort, (), (_plain(value, self.sort == "bool"),))

    def add(self, op: str, *children: int, parameters: tuple[Any, ...] = ()) -> int:
        """Return the number of an element of the result's type."""
        return self.table.add(op, self.sort, children, parameters)

    def shaped(self, numbers: list[int]) -> Array:
        """Return numbers in the shape of the result."""
        return np.array(numbers, np.int64).reshape(self.result.shape)


def lifted(
    pattern: TermPattern, environment: Bindings, variables: Mapping[str, Array], table: ElementTable, sorts: Sorts
) -> Array:
    """Return the element numbers of a well-formed instance of `pattern`. Raises KeyError for an unbound variable."""
    if isinstance(pattern, Variable):
        return variables[pattern.name]
    operands = tuple([lifted(argument, environment, variables, table, sorts) for argument in pattern.arguments])
    result = type_of(pattern, environment)
    if result is None:
        raise ValueError(f"{pattern} is ill-formed")
    symbol = symbol_of(pattern, environment)
    call = Lifted(table, operands, result, sorts)
    special = _SPECIAL.get(symbol.op)
    if special is not None:
        return special(call, symbol.parameters)
    if symbol.op in _ELEMENTWISE:
        return _elementwise(call, symbol.op, symbol.parameters)
    return np.asarray(LANGUAGE[symbol.op].evaluate(operands, symbol.parameters, symbol.output))


_ELEMENTWISE = frozenset({*UNARY, *BINARY, *COMPARISON, "Cast", "Where"}) - {"Identity"}


def _elementwise(call: Lifted, op: str, parameters: Parameters) -> Array:
    # The target of a Cast is the sort of its result, so that the parameter says nothing more.
    given = () if op == "Cast" else parameters
    rows = [np.broadcast_to(operand, call.result.shape).reshape(-1).tolist() for operand in call.operands]
    return call.shaped([call.add(op, *children, parameters=given) for children in zip(*rows, strict=True)])


def _identity(call: Lifted, parameters: Parameters) -> Array:
    return call.operands[0]


def _clip(call: Lifted, parameters: Parameters) -> Array:
    data, low, high = (np.broadcast_to(o, call.result.shape).reshape(-1).tolist() for o in call.operands)
    above = [call.add("Max", x, y) for x, y in zip(data, low, strict=True)]
    return call.shaped([call.add("Min", x, y) for x, y in zip(above, high, strict=True)])


def _constant(call: Lifted, parameters: Parameters) -> Array:
    dtype, shape, value = parameters
    if not isinstance(value, bytes):
        return np.full(shape, call.fill(value), np.int64)
    return call.shaped([call.fill(one) for one in constant_array(dtype, shape, value).reshape(-1).tolist()])


def _pad(call: Lifted, parameters: Parameters) -> Array:
    pads, mode, value = parameters
    fill = call.fill(0 if value == 0 else value[1])
    return np.asarray(LANGUAGE["Pad"].evaluate(call.operands, (pads, mode, ("int64", fill)), 0))


def _rows(data: Array, axes: tuple[int, ...]) -> list[list[int]]:
    """Return the operands of each result of a reduction."""
    kept = [axis for axis in range(data.ndim) if axis not in axes]
    count = int(np.prod([data.shape[axis] for axis in axes], dtype=np.int64))
    moved = data.transpose(*kept, *axes)
    return moved.reshape(int(np.prod(moved.shape[: len(kept)], dtype=np.int64)), count).tolist()


def _fold(op: str) -> Callable[[Lifted, Parameters], Array]:
    def fold(call: Lifted, parameters: Parameters) -> Array:
        return call.shaped([call.add(op, *row) for row in _rows(call.operands[0], parameters[0])])

    return fold


def _place(op: str) -> Callable[[Lifted, Parameters], Array]:
    def place(call: Lifted, parameters: Parameters) -> Array:
        rows = _rows(call.operands[0], (parameters[0],))
        return call.shaped([call.add(op, *row, parameters=(parameters[2],)) for row in rows])

    return place


def _softmax(call: Lifted, parameters: Parameters) -> Array:
    data, axis = call.operands[0], parameters[0]
    found = [
        [call.add("Softmax", *row, parameters=(place,)) for place in range(len(row))] for row in _rows(data, (axis,))
    ]
    moved = np.moveaxis(data, axis, -1).shape
    return np.moveaxis(np.array(found, np.int64).reshape(moved), -1, axis)


def _products(call: Lifted, x: Array, y: Array) -> Array:
    """Return the product of stacks of matrices of numbers."""
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    count = math.prod(batch)
    left = np.broadcast_to(x, (*batch, *x.shape[-2:])).reshape(count, *x.shape[-2:])
    right = np.broadcast_to(y, (*batch, *y.shape[-2:])).reshape(count, *y.shape[-2:])
    found = [
        [[_dot(call, row.tolist(), column.tolist()) for column in b.T] for row in a]
        for a, b in zip(left, right, strict=True)
    ]
    return np.array(found, np.int64).reshape(*batch, x.shape[-2], y.shape[-1])


def _dot(call: Lifted, xs: list[int], ys: list[int]) -> int:
    return call.add("ReduceSum", *[call.add("Mul", x, y) for x, y in zip(xs, ys, strict=True)])


def _matmul(call: Lifted, parameters: Parameters) -> Array:
    x, y = call.operands
    found = _products(call, x[None, :] if x.ndim == 1 else x, y[:, None] if y.ndim == 1 else y)
    return found.reshape(call.result.shape)


def _gemm(call: Lifted, parameters: Parameters) -> Array:
    alpha, beta, left, right = parameters
    x, y = (o.T if turned else o for o, turned in zip(call.operands, (left, right), strict=False))
    scale = call.fill(alpha)
    found = [call.add("Mul", number, scale) for number in _products(call, x, y).reshape(-1).tolist()]
    if len(call.operands) == 3:
        factor, bias = call.fill(beta), np.broadcast_to(call.operands[2], call.result.shape).reshape(-1).tolist()
        found = [call.add("Add", n, call.add("Mul", b, factor)) for n, b in zip(found, bias, strict=True)]
    return call.shaped(found)


def _conv(call: Lifted, parameters: Parameters) -> Array:
    group, kernel, pads, strides, dilations = parameters
    x, w = call.operands[:2]
    windows = window_view(pad_spatially(x, pads, call.fill(0)), kernel, strides, dilations)
    found = []
    for sample in windows:
        for channel, weights in enumerate(w):
            first = channel // (w.shape[0] // group) * w.shape[1]
            part = np.moveaxis(sample[first : first + w.shape[1]], 0, len(kernel))
            rows = part.reshape(-1, weights.size).tolist()
            sums = [_dot(call, row, weights.reshape(-1).tolist()) for row in rows]
            if len(call.operands) == 3:
                sums = [call.add("Add", number, int(call.operands[2][channel])) for number in sums]
            found.extend(sums)
    return call.shaped(found)


def _windows(call: Lifted, parameters: Parameters) -> list[list[int]]:
    kernel, pads, strides, dilations = parameters[:4]
    view = window_view(pad_spatially(call.operands[0], pads, _ABSENT), kernel, strides, dilations)
    return view.reshape(-1, int(np.prod(kernel))).tolist()


def _max_pool(call: Lifted, parameters: Parameters) -> Array:
    rows = _windows(call, parameters)
    return call.shaped([call.add("ReduceMax", *[n for n in row if n != _ABSENT]) for row in rows])


def _average_pool(call: Lifted, parameters: Parameters) -> Array:
    found = []
    for row in _windows(call, parameters):
        present = [number for number in row if number != _ABSENT]
        count = len(row) if parameters[4] else len(present)
        found.append(call.add("Div", call.add("ReduceSum", *present), call.fill(count)))
    return call.shaped(found)


def _normalised(call: Lifted, parameters: Parameters) -> Array:
    data = call.operands[0]
    along = (-1, *[1] * (data.ndim - 2))
    rows = [np.broadcast_to(o.reshape(along), data.shape).reshape(-1).tolist() for o in call.operands[1:]]
    epsilon, found = call.fill(parameters[0]), []
    for x, scale, bias, mean, variance in zip(data.reshape(-1).tolist(), *rows, strict=True):
        root = call.add("Sqrt", call.add("Add", variance, epsilon))
        quotient = call.add("Div", call.add("Sub", x, mean), root)
        found.append(call.add("Add", call.add("Mul", quotient, scale), bias))
    return call.shaped(found)


_SPECIAL: Mapping[str, Callable[[Lifted, Parameters], Array]] = {
    "Identity": _identity,
    "Clip": _clip,
    "Constant": _constant,
    "Pad": _pad,
    "Softmax": _softmax,
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Conv": _conv,
    "MaxPool": _max_pool,
    "AveragePool": _average_pool,
    "BatchNormalization": _normalised,
    **{op: _fold(op) for op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean")},
    **{op: _place(op) for op in ("ArgMax", "ArgMin")},
}
