"""The type of a pass, and the tests that rewrites make on a program before they change it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from miscompile.core.tensor import Array
from miscompile.targets.toy.ir import Bugs, Code, ToyCall, ToyShape

ProgramSweep = Callable[[Code, Bugs], bool]
"""Rewrites a whole program; tells whether it changed."""

RewriteRule = Callable[[Code, ToyCall, Bugs], bool]
"""Rewrites the program at one call; tells whether it changed. Each rewrite must make the program simpler."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A named rewrite. Level `basic` runs the basic ones only, `full` all.

    The `last` ones choose storage and loops: they run once after the rounds of all others, which do not know the calls
    that they write. Those that `rounds` change the order or the number of roundings.
    """

    name: str
    sweep: ProgramSweep
    basic: bool = False
    last: bool = False
    rounds: bool = False


def peephole(*rules: RewriteRule) -> ProgramSweep:
    """Return the sweep that tries each rule at each call; it bounds the number of rewrites against endless loops."""

    def sweep(code: Code, bugs: Bugs) -> bool:
        index, budget = 0, 4 * len(code.calls) + 16
        start = budget
        while index < len(code.calls) and budget:
            call = code.calls[index]
            if any(rule(code, call, bugs) for rule in rules):
                budget -= 1
            else:
                index += 1
        return budget < start

    return sweep


def kind_of(code: Code, name: str) -> str:
    """Return numpy's letter for the kind of `name`'s element type: f, i, u, b, or `""` when it is unknown."""
    dtype = code.dtype(name)
    return "" if dtype is None else dtype.kind


def only_use(code: Code, name: str) -> bool:
    """Tell whether exactly one operand, and no graph output, reads `name`."""
    return code.uses(name) == 1 and name not in code.outputs


def same_shape(code: Code, first: str, second: str) -> bool:
    """Tell whether both shapes are fully known and equal."""
    shape = code.shape(first)
    return shape is not None and shape == code.shape(second)


def all_equal(value: Array | None, number: Any) -> bool:  # noqa: ANN401 - a number or bool
    """Tell whether `value` is given, not empty, and each element equals `number`."""
    return value is not None and value.size > 0 and bool((value == number).all())


def integers(value: Array | None) -> tuple[int, ...] | None:
    """Return the elements of a constant as Python integers; None when there is no constant."""
    return None if value is None else tuple(int(item) for item in value.ravel())


def int64(values: ToyShape) -> Array:
    """Return a vector of int64, the dtype of shapes and axes in ONNX."""
    return np.array(values, np.int64)


def reshape_to(code: Code, value: str, shape: ToyShape, output: str) -> ToyCall:
    """Return a call that gives `value` exactly this shape (a zero in it is a size)."""
    return ToyCall("Reshape", (value, code.add_constant(int64(shape))), (output,), {"allowzero": 1})


def swapped_pairs(call: ToyCall) -> tuple[tuple[str, str], ...]:
    """Return the operands of a binary call in both orders."""
    return ((call.inputs[0], call.inputs[1]), (call.inputs[1], call.inputs[0]))


def reduced_axes(code: Code, call: ToyCall, rank: int) -> tuple[int, ...] | None:
    """Return the axes that a reduction names, sorted; None when they are unknown, or it names none."""
    axes = integers(code.constant(call.input(1))) if call.input(1) else call.get("axes")
    return tuple(sorted({axis % rank for axis in axes})) if axes and rank else None
