"""The judgement of a front end against the results of its library (OPERA, section III-C).

There are two rules. `strict` allows each element the difference that its type and its own sensitivity explain. `fixed`
is the paper's: a Chebyshev distance of 1e-3, whatever the values.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.core.outcome import (
    Crashed,
    Defect,
    Outcome,
    OutOfMemory,
    Raised,
    Rejected,
    TimedOut,
    Unsupported,
    Values,
)  # fmt: skip
from miscompile.core.tensor import Array, Tensor
from miscompile.core.verdict import FindingKind
from miscompile.ops.special import least, least_normal
from miscompile.oracles.compare import distance
from miscompile.oracles.judge import FIXED_THRESHOLD, CompareRule
from miscompile.oracles.library_reference import LibraryReference, wide

RELATIVE = {"float64": 1e-5, "float32": 1e-3, "float16": 1e-1, "bfloat16": 2e-1, "complex128": 1e-5, "complex64": 1e-3}
"""Allowed difference of two implementations, relative to the element, by element type. It is large for 16 bits, because
some implementations sum in the type itself and others in a wider one."""
SCALE = 0.1
"""Elements smaller than this share of the output's largest are compared relative to that share."""
NOISE = 64.0
"""Allowed difference as a multiple of the element's movement under noise of single units in the last place."""
JUMPS = 4
"""Where noise makes some elements jump, the operator is discontinuous (nearest pixel, floor), and other elements may
jump in another implementation: `JUMPS * (jumping elements + 1)` of them are allowed, but at most one in a hundred."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """The result of one test on a front end.

    `status`: `pass`, `unsupported`, `finding`, `memory` (no judgement). `message` is a line for people; `output` the
    number of the bad output, `place` its worst element (flat index); `distance` the Chebyshev distance over all numeric
    outputs, None without one; `allowed` the difference that the rule allows at the worst element.
    """

    status: Literal["pass", "unsupported", "finding", "memory"]
    kind: FindingKind | None = None
    message: str = ""
    output: int = 0
    distance: float | None = None
    allowed: float = 0.0
    place: int = 0


def judge(
    reference: LibraryReference, outcome: Outcome, compare: CompareRule, narrowed: Mapping[str, str]
) -> Judgement:
    """Judge the outcome of a front end; `narrowed` maps types that its compiler computes in a narrower type."""
    match outcome:
        case Values(results):
            return _values(reference, results[0], compare, narrowed)
        case Unsupported(stage, message, _, kind):
            return Judgement("unsupported", message=f"{stage}: {kind}: {message}" if kind else f"{stage}: {message}")
        case Rejected(stage, message):
            return Judgement("unsupported", message=f"{stage}: {message}")
        case Defect(stage, kind, message):
            return Judgement("unsupported", message=f"{stage}: a defect of the adapter: {kind}: {message}")
        case OutOfMemory(stage, message):
            return Judgement("memory", message=f"{stage}: {message}")
        case Raised(stage, kind, message):
            return Judgement("finding", "exception", f"{kind} in stage {stage}: {message}")
        case Crashed(stage, signal):
            return Judgement("finding", "death", f"signal {signal} in stage {stage}")
        case TimedOut(stage, seconds):
            return Judgement("finding", "hang", f"no end of stage {stage} within {seconds:g} s")


def _values(
    reference: LibraryReference, found: Sequence[Tensor | None], compare: CompareRule, narrowed: Mapping[str, str]
) -> Judgement:
    if len(found) != len(reference.results):
        return Judgement("finding", "missing", f"{len(found)} outputs instead of {len(reference.results)}")
    worst: float | None = None
    first: Judgement | None = None
    for place, (want, got, spread) in enumerate(zip(reference.results, found, reference.spread, strict=True)):
        assert want is not None  # the library gave it
        problem = _structure(want, got, narrowed)
        if problem is None and got is not None and want.dtype == "string":
            problem = _texts(want, got, spread)
        elif problem is None and got is not None and spread is not None:
            spread = _within(want, np.asarray(spread, np.float64), narrowed)
            gap = _gap(want, got, spread)
            worst = max(worst or 0.0, float(gap.max(initial=0.0)))
            limit = _allowed(want, spread, narrowed) if compare == "strict" else np.full(gap.shape, FIXED_THRESHOLD)
            excess = gap > limit
            if excess.sum() > _edges(want, spread, narrowed):
                at = int(np.argmax(np.where(excess, gap - np.where(np.isfinite(limit), limit, 0.0), 0.0)))
                most = float(limit.flat[at])
                message = (
                    f"output {place} differs by {gap.flat[at]:.6g} in element {at}: {got.numbers().flat[at]} instead of"
                    f" {want.numbers().flat[at]}, {most:.3g} can be explained; {int(excess.sum())} of {gap.size} differ"
                )
                first = first or Judgement("finding", "wrong", message, place, allowed=most, place=at)
        if problem is not None:
            kind, message = problem
            first = first or Judgement("finding", kind, f"output {place}: {message}", place)
    if first is None:
        return Judgement("pass", distance=worst)
    return replace(first, distance=worst)


def _structure(want: Tensor, got: Tensor | None, narrowed: Mapping[str, str]) -> tuple[FindingKind, str] | None:
    """Return the error in an output's presence, shape or type; None if there is none."""
    if got is None:
        return "missing", "is missing"
    if got.shape != want.shape:
        return "shape", f"shape {list(got.shape)} instead of {list(want.shape)}"
    if got.dtype not in (want.dtype, narrowed.get(want.dtype, want.dtype)):
        return "dtype", f"{got.dtype} instead of {want.dtype}"
    return None


def _texts(want: Tensor, got: Tensor, spread: Array | None) -> tuple[FindingKind, str] | None:
    """Return the first specified text that differs; None if there is none."""
    if spread is None:
        return None
    other = np.asarray(want.array != got.array, bool) & np.isfinite(spread)
    if not other.any():
        return None
    at = int(np.argmax(other))
    return "wrong", f"element {at} is {got.array.flat[at]!r} instead of {want.array.flat[at]!r}"


def _within(want: Tensor, spread: Array, narrowed: Mapping[str, str]) -> Array:
    """Set the spread of elements to infinity that overflow the narrower type in which a compiler computes by design."""
    narrow = DTYPES.get(narrowed.get(want.dtype, ""))
    if narrow is None or DTYPES[want.dtype].kind == "complex":
        return spread
    numbers = np.asarray(want.numbers())
    held = ~np.isfinite(numbers) | ((numbers >= narrow.low) & (numbers <= narrow.high))
    return np.asarray(np.where(held, spread, np.inf))


def _gap(want: Tensor, got: Tensor, spread: Array) -> Array:
    """Return the difference of each element: zero where its spread is infinite, infinite where only one is NaN."""
    gap = distance(wide(want), wide(got))
    if DTYPES[want.dtype].kind in ("int", "uint"):  # doubles cannot tell large integers apart
        gap = np.where(want.numbers() == got.numbers(), 0.0, np.maximum(gap, 1.0))
    return np.asarray(np.where(np.isfinite(spread), gap, 0.0))


def _edges(want: Tensor, spread: Array, narrowed: Mapping[str, str]) -> int:
    """Return the number of elements that may differ because the operator is discontinuous."""
    size = np.abs(wide(want))
    largest = float(np.max(size, initial=0.0, where=np.isfinite(size)))
    step = max(_relative(want.dtype, narrowed) * largest, 0.5 if DTYPES[want.dtype].kind in ("int", "uint") else 0.0)
    jumps = int((spread > step).sum()) if step else 0
    return min(JUMPS * (jumps + 1), spread.size // 100) if jumps else 0


def _allowed(want: Tensor, spread: Array, narrowed: Mapping[str, str]) -> Array:
    """Return the difference that type and sensitivity of each element explain."""
    size = np.abs(wide(want))
    largest = float(np.max(size, initial=0.0, where=np.isfinite(size)))
    allowed = NOISE * spread * _coarser(want.dtype, narrowed)
    relative = _relative(want.dtype, narrowed)
    if relative:
        allowed = allowed + _least_step(want.dtype)
        allowed = allowed + relative * np.maximum(np.where(np.isfinite(size), size, largest), SCALE * largest)
    return np.asarray(allowed)


def _coarser(dtype: str, narrowed: Mapping[str, str]) -> float:
    """Return how much further a unit in the last place moves an element in the type that a compiler computes it in."""
    narrow = narrowed.get(dtype, dtype)
    return DTYPES[narrow].eps / DTYPES[dtype].eps if narrow != dtype and DTYPES[dtype].kind == "float" else 1.0


def _least_step(dtype: str) -> float:
    """Return what a flush of subnormal numbers to zero changes, which no page forbids.

    Nobody flushes the small types; two units of their subnormal numbers are rounding like that of all others.
    """
    plain = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    if plain in ("float32", "float64", "bfloat16"):
        return least_normal(plain)
    return 2 * least(plain) if plain == "float16" else 0.0


def _relative(dtype: str, narrowed: Mapping[str, str]) -> float:
    if DTYPES[dtype].kind not in ("float", "complex"):
        return 0.0
    narrow = narrowed.get(dtype, dtype)
    return max(RELATIVE.get(dtype, 0.25), RELATIVE.get(narrow, 0.25))
