"""Ranges of the integers in a loop program, which prove that none leaves its type; `ranges.py` explains the reason.

All stores into a buffer share one range, independent of their order. The ranges are computed to a fixed point:
elementwise computations converge at once; a sum of integers never does and counts as overflow.

Standalone scripts contain the text of this file, so it has plain functions and imports only TVM.
"""

# ruff: noqa: ANN401 - TVM's objects have no types

from collections.abc import Callable
from typing import Any, NamedTuple

import tvm_ffi

from miscompile.targets.tvm.relax.hazards import is_float, kind_of
from miscompile.targets.tvm.relax.intervals import IntegerRange, full, hull, is_vector, of_bits, products, unproven

ROUNDS = 6
"""The number of rounds in which ranges may grow before they count as diverging."""

COMPARISONS = frozenset({"EQ", "NE", "LT", "LE", "GT", "GE", "And", "Or", "Not"})

SUMS = frozenset({
    "Add", "Sub", "Mul", "FloorDiv", "FloorMod", "Div", "Mod", "LShift", "RShift", "Cast", "Call",
})  # fmt: skip
"""Expressions that may leave their type, or whose effect on integers is unknown."""

FIELDS = {"Select": ("true_value", "false_value"), "Cast": ("value",), "BitwiseNot": ("a",)}
"""The fields with the operands of expressions, if these are not `a` and `b`."""


class Parts(NamedTuple):
    """The parts of a loop program: the stores by buffer, the ranges of loop variables, and all integer expressions
    that may leave their type."""

    stored: list[tuple[Any, Any]]
    loops: dict[Any, Any]
    sums: list[Any]


def loop_spans(function: Any, given: list[Any], results: list[Any]) -> list[Any]:
    """Return the ranges of the results of the loop program `function` on operands of the ranges `given`.

    `results` are the ranges of the results' types. Raises OverflowsError when an integer may leave its type.
    """
    state = dict(zip(function.params, [*given, *(None for _ in results)], strict=True))
    parts = parts_of(function.body)
    state |= parts.loops
    written = {where for where, _ in parts.stored}
    for _ in range(ROUNDS):
        before = dict(state)
        for where, value in parts.stored:
            spans = [one for one in (state.get(where), reach(value, state, written)) if one is not None]
            state[where] = hull(spans) if spans else None
        if state == before:
            break
    else:
        unproven("loops whose integers grow")
    for one in parts.sums:
        reach(one, state, written)
    ends = list(function.params)[len(given) :]
    return [None if limits is None else state[end] or limits for end, limits in zip(ends, results, strict=True)]


def parts_of(body: Any) -> Parts:
    """Return the parts of a loop program. Raises OverflowsError for buffers of several names, and for vectors."""
    found = Parts([], {}, [])
    trouble: list[str] = []

    def visit(one: Any) -> None:
        kind = kind_of(one)
        if kind in ("BufferStore", "TensorStore"):
            found.stored.append((one.buffer, one.value))
        elif kind in ("Bind", "Let", "LetStmt"):
            found.stored.append((one.var, one.value))
        elif kind == "For":
            found.loops[one.loop_var] = extent(one.min, one.extent)
        elif kind == "IterVar":
            found.loops[one.var] = extent(one.dom.min, one.dom.extent) if one.dom is not None else None
        elif kind in SUMS and is_vector(str(one.ty)):
            trouble.append("loops on vectors of integers")
        elif kind in SUMS and not is_float(one.ty) and full(str(one.ty)):
            found.sums.append(one)
        elif kind in ("MatchBufferRegion", "DeclBuffer"):
            trouble.append("buffers of several names")

    tvm_ffi.structural_walk(body, visit)
    if trouble:  # an exception raised inside `visit` would be replaced by another one
        unproven(trouble[0])
    return found


def extent(least: Any, count: Any) -> IntegerRange | None:
    """Return the range of a loop variable; None if its loop has no known number of iterations."""
    known = kind_of(least) == kind_of(count) == "IntImm"
    return (int(least.value), int(least.value) + max(0, int(count.value) - 1)) if known else None


def reach(one: Any, state: dict[Any, Any], written: set[Any]) -> IntegerRange | None:
    """Return the range of an expression; None if it is not an integer, or depends on a buffer without a store so
    far.

    Raises OverflowsError when an integer may leave its type.
    """
    kind, dtype = kind_of(one), str(getattr(one, "ty", ""))
    if is_vector(dtype):
        unproven("loops on vectors of integers")
    limits = full(dtype)
    if limits is None or kind in COMPARISONS:
        return limits
    if kind == "IntImm":
        return int(one.value), int(one.value)
    if kind in ("Var", "BufferLoad", "TensorLoad"):
        place = one if kind == "Var" else getattr(one, "source", None)
        found: IntegerRange | None = state.get(place)
        return found if found is not None or place in written else limits
    if kind == "Cast" and is_float(one.value.ty):
        return unproven("loops that make floats integers")
    if kind == "Call":
        return called_in(one, [reach(part, state, written) for part in one.args])
    fields = FIELDS.get(kind) or ("a", "b")
    return computed(kind, limits, [reach(getattr(one, field), state, written) for field in fields])


def called_in(one: Any, given: list[IntegerRange | None]) -> IntegerRange | None:
    """Return the range of a call inside loops on operands of the ranges `given`."""
    name = str(getattr(one.op, "name", "")).rpartition(".")[2]
    chosen = {"if_then_else": given[1:], "likely": given}.get(name)
    if chosen is not None:
        spans = [span for span in chosen if span]
        return hull(spans) if spans else None
    return full("bool") if str(one.ty) == "bool" else unproven(f"{name} of integers in loops")


def computed(kind: str, limits: IntegerRange, given: list[IntegerRange | None]) -> IntegerRange | None:
    """Return the range of an operation on operands of the ranges `given`, in a type of the range `limits`."""
    spans = [span for span in given if span is not None]
    if kind == "Select":
        return hull(spans) if spans else None
    if kind not in OPERATIONS:
        return unproven(f"{kind} of integers in loops")
    if len(spans) < len(given):
        return None
    found = limits if kind == "BitwiseNot" else OPERATIONS[kind](*spans)
    if found is None or not limits[0] <= found[0] <= found[1] <= limits[1]:
        return unproven("loops whose integers may leave their type")
    return found


def divided(one: IntegerRange, other: IntegerRange) -> IntegerRange | None:
    """Return the range of a quotient in any rounding; None unless the divisor is positive."""
    if other[0] < 1:
        return None
    floors = [a // b for a in one for b in other]
    return min(floors), max(floors) + 1


def left_over(_: IntegerRange, other: IntegerRange) -> IntegerRange | None:
    """Return the range of a non-negative remainder; None unless the divisor is positive."""
    return None if other[0] < 1 else (0, other[1] - 1)


OPERATIONS: dict[str, Callable[..., IntegerRange | None]] = {
    "Add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "Sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "Mul": products,
    "Min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "Max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "Cast": lambda a: a,
    "FloorDiv": divided,
    "Div": divided,
    "FloorMod": left_over,
    "BitwiseAnd": of_bits,
    "BitwiseOr": of_bits,
    "BitwiseXor": of_bits,
    "BitwiseNot": of_bits,
}
"""For each operation of loops on integers the range of its result; None if it may be undefined."""
