"""Comparison of outputs: presence, dtype, shape, bits, and the largest difference in numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from miscompile.base.dtypes import DTYPES, is_float
from miscompile.core.case import Case, Dim, Port
from miscompile.core.outcome import Values
from miscompile.core.tensor import Array, Tensor
from miscompile.graph.specialise import bindings, is_symbolic

MismatchKind = Literal["missing", "dtype", "shape", "wrong"]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One output of one feed that differs. `detail` is a phrase for people."""

    kind: MismatchKind
    feed: int
    output: int
    detail: str


def finite(values: Values) -> bool:
    """Tell whether no float output holds NaN or infinity."""
    for outputs in values.results:
        for tensor in outputs:
            if tensor is not None and is_float(tensor.dtype) and not np.isfinite(tensor.numbers()).all():
                return False
    return True


def mismatches(ports: Sequence[Port], reference: Values, other: Values) -> list[Mismatch]:
    """Return every output that differs, in order of feeds and outputs.

    Zeros of either sign are equal, because ONNX promises no sign of zero; everything else is compared by bits.
    """
    if other.results is reference.results:  # the reply encoder has found all bits equal
        return []
    found = []
    for feed, (expected, actual) in enumerate(zip(reference.results, other.results, strict=True)):
        for index in range(len(ports)):
            mismatch = _compare(feed, index, expected[index], actual[index])
            if mismatch:
                found.append(mismatch)
    return found


def symbols_of(case: Case) -> list[dict[str, int]]:
    """Return for each feed of `case` the size that each symbol of its inputs stands for."""
    declared = [(port.name, port.shape) for port in case.program.inputs]
    if not is_symbolic(case.program.inputs):
        return [{} for _ in case.feeds]
    names = [name for name, _ in declared]
    return [bindings(declared, {n: value.shape for n, value in zip(names, feed, strict=True)}) for feed in case.feeds]


def contradiction(ports: Sequence[Port], values: Values, symbols: Sequence[Mapping[str, int]] = ()) -> Mismatch | None:
    """Return the first output whose type contradicts its port; undeclared sizes match any size.

    A symbol stands for one size in all outputs of a feed: the one that `symbols` gives it, by feed, if any.
    """
    for feed, outputs in enumerate(values.results):
        bound = dict(symbols[feed]) if symbols else {}
        for index, (port, value) in enumerate(zip(ports, outputs, strict=True)):
            if value is None:
                continue
            if value.dtype != port.dtype:
                return Mismatch("dtype", feed, index, f"{value.dtype} where ONNX infers {port.dtype}")
            if not _fits(port.shape, value.shape, bound):
                wanted = [bound.get(size, size) if isinstance(size, str) else size for size in port.shape or ()]
                detail = f"shape {list(value.shape)} where ONNX infers {wanted}"
                return Mismatch("shape", feed, index, detail)
    return None


def _fits(declared: tuple[Dim, ...] | None, shape: tuple[int, ...], bound: dict[str, int]) -> bool:
    """Tell whether `shape` has the declared sizes; a symbol without a size gets that of `shape`."""
    if declared is None:
        return True
    if len(declared) != len(shape):
        return False
    return all(
        want is None or have == (bound.setdefault(want, have) if isinstance(want, str) else want)
        for want, have in zip(declared, shape, strict=True)
    )


def _compare(feed: int, index: int, expected: Tensor | None, actual: Tensor | None) -> Mismatch | None:
    if expected is actual:
        return None
    if expected is None or actual is None:
        return Mismatch("missing", feed, index, "output is missing" if actual is None else "output appears")
    if expected.dtype != actual.dtype:
        return Mismatch("dtype", feed, index, f"{actual.dtype} instead of {expected.dtype}")
    if expected.shape != actual.shape:
        return Mismatch("shape", feed, index, f"shape {list(actual.shape)} instead of {list(expected.shape)}")
    if expected.same(actual) or _equal_numbers(expected, actual):
        return None
    return Mismatch("wrong", feed, index, describe_difference(expected, actual))


def _equal_numbers(expected: Tensor, actual: Tensor) -> bool:
    left, right = expected.numbers(), actual.numbers()
    if left.dtype.kind == "f":
        return bool(np.array_equal(left, right, equal_nan=True))
    return bool(np.array_equal(left, right))


def difference(expected: Tensor, actual: Tensor) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    """Return |expected - actual| elementwise as doubles; NaN against a number counts as infinite."""
    if expected.numbers().dtype.kind in "iu":
        return _integer_difference(expected.numbers(), actual.numbers())
    with np.errstate(invalid="ignore", over="ignore"):
        return distance(expected.numbers().astype(np.float64), actual.numbers().astype(np.float64))


def distance(left: Array, right: Array) -> Array:
    """Return |left - right| elementwise: zero where both are equal or NaN, infinite where only one is NaN."""
    with np.errstate(invalid="ignore", over="ignore"):
        gap = np.asarray(np.abs(left - right))
    gap[(left == right) | (np.isnan(left) & np.isnan(right))] = 0.0
    gap[np.isnan(gap)] = np.inf
    return gap


def _integer_difference(left: Array, right: Array) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    """Subtract 64-bit integers as integers, because doubles cannot represent all of them."""
    unsigned = np.dtype(f"u{left.dtype.itemsize}")
    with np.errstate(over="ignore"):
        gap = np.where(left > right, left - right, right - left)
    return np.asarray(gap.astype(unsigned).astype(np.float64))


def describe_difference(expected: Tensor, actual: Tensor) -> str:
    """Return a phrase with the number of elements that differ and the worst of them."""
    if expected.dtype == "string":
        return "strings differ"
    gap = difference(expected, actual)
    place = int(np.argmax(gap))
    worst, want, got = gap.flat[place], expected.numbers().flat[place], actual.numbers().flat[place]
    count = int(np.count_nonzero(gap))
    return f"{count} of {gap.size} elements differ, by up to {worst:.6g}: {got} instead of {want}"


def within_ulps(expected: Tensor, actual: Tensor, own: float, largest: float = 0.0, dtype: str = "") -> bool:
    """Tell whether floats of equal shape differ by little: element by element at most `own` units in the last place.

    `largest` allows in addition so many units in the last place of the tensor's largest element. The units are
    those of `dtype` if that is given.
    """
    eps = DTYPES[dtype or expected.dtype].eps
    if not eps:
        return False
    with np.errstate(invalid="ignore"):
        left, right = expected.numbers().astype(np.float64), actual.numbers().astype(np.float64)
    size = np.abs(left)
    allowed = np.maximum(own * eps * size, largest * eps * np.max(size, initial=0.0, where=np.isfinite(size)))
    with np.errstate(invalid="ignore"):
        gap = np.abs(left - right)
        close = (gap <= allowed) & np.isfinite(gap)
    return bool((close | (left == right) | (np.isnan(left) & np.isnan(right))).all())


def largest_difference(expected: Tensor, actual: Tensor) -> float:
    """Return the Chebyshev distance (0.0 for empty tensors)."""
    gap = difference(expected, actual)
    return float(gap.max()) if gap.size else 0.0
