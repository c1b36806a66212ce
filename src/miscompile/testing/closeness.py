"""The comparison of a compiled function with the function itself, when neither is a graph that we can rewrite.

Rounding is told from a fault by experiment, as in Monte-Carlo arithmetic: the uncompiled function is run again on
inputs that are moved by units in the last place, and what moves with them is no evidence.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from miscompile.core.tensor import Array

ArrayFunction: TypeAlias = Callable[[Sequence[Array]], Sequence[Array]]
"""From arrays to arrays; both sides of a comparison have this form."""

REPETITIONS = 8
"""Runs with moved inputs."""

_MARGIN = 16.0
_UNITS = 64.0
"""Units in the last place, of an element and of the largest one, that reassociation may cost."""


def difference(function: ArrayFunction, inputs: Sequence[Array], got: Sequence[Array], rng: np.random.Generator) -> str:
    """Return one line on how `got` differs from `function(inputs)` beyond rounding; an empty text when it does not.

    Floats of numpy's types are compared in float64, everything else exactly, but elements that change when the inputs
    are moved by units in the last place are left out.
    """
    expected = [np.asarray(one) for one in function(inputs)]
    if len(expected) != len(got):
        return f"{len(got)} outputs, expected {len(expected)}"
    moved: list[list[Array]] = []
    for place, (want, have) in enumerate(zip(expected, map(np.asarray, got), strict=True)):
        if want.shape != have.shape or want.dtype != have.dtype:
            return f"output {place} is {have.dtype}{list(have.shape)}, expected {want.dtype}{list(want.shape)}"
        if _same(want, have):
            continue
        moved = moved or [list(map(np.asarray, function(_moved(inputs, rng)))) for _ in range(REPETITIONS)]
        if told := _differs(want, have, [run[place] for run in moved]):
            return f"output {place}: {told}"
    return ""


def identical(one: Sequence[Array], other: Sequence[Array]) -> bool:
    """Tell whether two runs of a function gave the same, NaN being the same as NaN."""
    return len(one) == len(other) and all(map(_same, one, other))


def _same(one: Array, other: Array) -> bool:
    return np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")


def _differs(want: Array, have: Array, moved: Sequence[Array]) -> str:
    with np.errstate(all="ignore"):
        if want.dtype.kind in "fc":
            runs = [np.abs(run.astype(np.complex128) - want.astype(np.complex128)) for run in moved]
            spread = np.max(runs, axis=0)
            size = np.abs(want.astype(np.complex128))
            largest = float(np.max(size[np.isfinite(size)], initial=0.0))
            eps = float(np.finfo(want.dtype).eps)
            allowed = _MARGIN * spread + _UNITS * eps * (size + largest)
            far = np.abs(have.astype(np.complex128) - want.astype(np.complex128))
            stable = np.isfinite(spread) | (np.isnan(want) & np.all([np.isnan(run) for run in moved], axis=0))
            bad = stable & ~((far <= allowed) | (want == have) | (np.isnan(want) & np.isnan(have)))
        else:
            bad = (want != have) & ~np.any([run != want for run in moved], axis=0)
    if not bad.any():
        return ""
    where = tuple(map(int, np.argwhere(bad)[0]))
    told = f"{int(bad.sum()):,} of {want.size:,} elements differ"
    return f"{told}; at {list(where)} it is {have[where]}, expected {want[where]}"


def _moved(inputs: Sequence[Array], rng: np.random.Generator) -> list[Array]:
    """Return the inputs with every float moved by at most one unit in its last place."""
    return [
        (one * (1 + rng.uniform(-1, 1, one.shape) * np.finfo(one.dtype).eps)).astype(one.dtype)
        if one.dtype.kind == "f"
        else one
        for one in inputs
    ]


def drawn(examples: Sequence[Array], rng: np.random.Generator) -> list[Array]:
    """Return new inputs like the examples: same shapes and types, integers within the range of the example's."""
    return [_drawn(one, rng) for one in examples]


def _drawn(example: Array, rng: np.random.Generator) -> Array:
    if example.dtype.kind == "b":
        return rng.integers(0, 2, example.shape).astype(bool)
    if example.dtype.kind in "iu" and example.size:
        return rng.integers(example.min(), example.max(), example.shape, example.dtype, endpoint=True)
    if example.dtype.kind == "f":
        return (rng.standard_normal(example.shape) * 10.0 ** rng.integers(-1, 2)).astype(example.dtype)
    return example
