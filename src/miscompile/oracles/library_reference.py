"""The library's own results for a program, and the allowed difference of each element.

The library runs every program on the same feed twice, with different seeds, and on feeds whose floats are moved by a
few units in the last place. The former detects randomness, the latter measures the sensitivity of each element: an
element that jumps under such noise (an index that depends on a tie, a floor near an integer) cannot be compared.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import zip_longest

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.core.case import Case, Port
from miscompile.core.outcome import Outcome, OutOfMemory, TimedOut, Unsupported, Values, is_death
from miscompile.core.tensor import Array, Tensor, tensor
from miscompile.instances.instance import Instance
from miscompile.ops.registry import having, written
from miscompile.oracles.compare import distance
from miscompile.oracles.fed_constants import fed, of_constants
from miscompile.oracles.unspecified.conversions import beyond_integers
from miscompile.oracles.unspecified.operands import tensors_of
from miscompile.oracles.unspecified.rules import UnspecifiedBehaviour, unspecified_of

NOISES = 4
"""Feeds with noise."""
UNITS = 2.0
"""Units in the last place that a float is moved by, at most."""

_CELLS = frozenset({"grucell", "lstmcell", "rnncell"})
"""Approximated operators of torch and Keras that ONNX does not have."""

_STEP = 2.0**-6
"""The movement of an integer for which a difference of one is allowed; see `library_judge.NOISE`."""


@dataclass(frozen=True, slots=True)
class LibraryReference:
    """The results of the library. `spread` holds for each output how far its elements moved under noise (infinite: the
    element is unspecified; 0 for texts); None for an output that is unspecified as a whole."""

    results: tuple[Tensor | None, ...]
    spread: tuple[Array | None, ...]

    @property
    def size(self) -> int:
        """Approximate size in memory, in bytes."""
        held = [one.array.nbytes for one in self.results if one is not None]
        return sum(held) + sum(one.nbytes for one in self.spread if one is not None and any(one.strides))


@dataclass(frozen=True, slots=True)
class Dropped:
    """The reason why the library's results are no reference: a short stable phrase that is counted.

    `invalid` (the library refuses it), `no tensor`, `random`, `undefined`, `unspecified`, `unstable`, `library dies`,
    `library hangs`, `too large`; `detail` is for people.
    """

    reason: str
    detail: str = ""


def reference_case(instance: Instance, case: Case) -> Case:
    """Return the case for the library: the feed twice, and then `NOISES` times with noise; a function of its bytes.

    The library gets the operands of a program of constants as inputs.
    """
    if of_constants(instance):
        case = fed(case)
    feed = case.feeds[0]
    rng = np.random.default_rng(random.Random(case.program.digest).getrandbits(63))
    noisy = tuple(tuple(_moved(value, rng) for value in feed) for _ in range(NOISES))
    return replace(case, feeds=(feed, feed, *noisy))


def _moved(value: Tensor, rng: np.random.Generator) -> Tensor:
    info = DTYPES[value.dtype]
    if value.dtype in ("complex64", "complex128"):
        eps = float(np.finfo(value.array.dtype).eps)
        return Tensor(
            value.dtype, (value.array * (1 + eps * rng.uniform(-UNITS, UNITS, value.shape))).astype(value.array.dtype)
        )
    if info.kind != "float" or info.bits < 16 or not value.array.size:
        return value
    with np.errstate(all="ignore"):
        numbers = np.asarray(value.numbers(), np.float64)
        return tensor(np.asarray(numbers * (1 + info.eps * rng.uniform(-UNITS, UNITS, value.shape))), value.dtype)


def assess(instance: Instance, case: Case, outcome: Outcome) -> LibraryReference | Dropped:
    """Return the reference for a front end; `outcome` is the library's, of `reference_case(instance, case)`."""
    if not isinstance(outcome, Values):
        return _refused(outcome)
    first, again, *moved = outcome.results
    if any(value is None for value in first) or not first:
        return Dropped("no tensor")
    if not _same(first, again):
        return Dropped("random")
    unspecified = unspecified_of(instance, case.feeds[0])
    whole = next((rule for rule in unspecified if rule.whole), None)
    if whole is not None:
        return Dropped(whole.kind, whole.reason)
    spreads = _spreads(instance, case, first, moved, {place for rule in unspecified for place in rule.outputs})
    if not any(spread is not None for spread in spreads):
        return Dropped("unspecified")
    if _all_open(spreads):
        return Dropped("unstable")
    return _closed(instance, case, first, spreads, unspecified)


def _spreads(
    instance: Instance,
    case: Case,
    first: Sequence[Tensor | None],
    moved: Sequence[Sequence[Tensor | None]],
    places: set[int],
) -> list[Array | None]:
    """Return how far each result moved under noise; None for the unspecified ones at `places`."""
    spreads = [
        None if place in places else _spread(value, [results[place] for results in moved])
        for place, value in enumerate(first)
    ]
    spreads = [
        None if one is None else np.asarray(np.maximum(one, _least_movement(instance.operator, value)))
        for one, value in zip(spreads, first, strict=True)
    ]
    if any(_has_nan(value) for value in tensors_of(instance, case.feeds[0])):
        return [None if one is None else _open_nan(one, value) for one, value in zip(spreads, first, strict=True)]
    return spreads


@cache
def _approximated() -> frozenset[str]:
    """Return the lower-case names of the operators that libraries approximate to an absolute error."""
    return _CELLS | {op.lower() for op, spec in written().items() if spec.approximated}


def _least_movement(operator: str, value: Tensor | None) -> float:
    """Return what the elements of a result move at least, because noise on the operands does not show it.

    Approximated functions have an absolute error: Erf of 1e-18 may be zero, and a gate of a recurrent layer that
    saturates hides what moves its operands. Operators that quantise may give the neighbouring step.
    """
    info = DTYPES.get(value.dtype) if value is not None else None
    if info is None:
        return 0.0
    if info.kind == "float" and operator.lower() in _approximated():
        return info.eps / 16
    return _STEP if info.kind in ("int", "uint") and operator in having("quantises") else 0.0


def _closed(
    instance: Instance,
    case: Case,
    first: Sequence[Tensor | None],
    spreads: Sequence[Array | None],
    unspecified: Sequence[UnspecifiedBehaviour],
) -> LibraryReference | Dropped:
    """Return the reference with unspecified elements marked; Dropped if no specified element is left."""
    for rule in unspecified:
        if rule.elements and first[0] is not None:
            spreads = _opened(spreads, [rule.open_elements(instance, first[0].shape)])
            if _all_open(spreads):
                return Dropped(rule.kind, rule.reason)
    spreads = _opened(spreads, beyond_integers(instance, case.feeds[0], first))
    if _all_open(spreads):
        return Dropped("undefined", "floats beyond the integers")
    return LibraryReference(tuple(map(_own, first)), tuple(map(_small, spreads, first)))


def _own(value: Tensor | None) -> Tensor | None:
    """Return a copy, because a tensor from a worker keeps the buffer with the results of all six feeds alive."""
    return None if value is None else Tensor(value.dtype, value.array.copy())


def _small(spread: Array | None, value: Tensor | None) -> Array | None:
    """Return a spread in less memory: a broadcast zero if nothing moves, else float32 if that is precise enough."""
    if spread is None or value is None:
        return None
    if not spread.any():
        return np.broadcast_to(np.float32(0), spread.shape)
    with np.errstate(over="ignore"):
        return spread if value.dtype in ("float64", "complex128") else np.asarray(spread, np.float32)


def _all_open(spreads: Sequence[Array | None]) -> bool:
    judged = [spread for spread in spreads if spread is not None]
    return all(spread.size and not np.isfinite(spread).any() for spread in judged)


def _opened(spreads: Sequence[Array | None], masks: Sequence[Array | None]) -> list[Array | None]:
    """Return the spreads with infinity where a mask marks an unspecified element; results without a mask stay."""
    return [
        np.where(mask, np.inf, spread) if spread is not None and mask is not None else spread
        for spread, mask in zip_longest(spreads, masks)
    ]


def _has_nan(value: Tensor) -> bool:
    return DTYPES[value.dtype].kind in ("float", "complex") and bool(np.isnan(value.numbers()).any())


def _open_nan(spread: Array, value: Tensor | None) -> Array:
    """Set the spread to infinity where an input NaN reaches the result, because few operators specify that."""
    if value is None or DTYPES[value.dtype].kind not in ("float", "complex"):
        return spread
    return np.asarray(np.where(np.isnan(wide(value)), np.inf, spread))


def with_outputs(case: Case, reference: LibraryReference) -> Case:
    """Return the case with the outputs that the library gave it."""
    ports = tuple(
        Port(f"y{place}", value.dtype, value.shape)
        for place, value in enumerate(reference.results)
        if value is not None
    )
    return replace(case, program=replace(case.program, outputs=ports)) if not case.program.outputs else case


def _refused(outcome: Outcome) -> Dropped:
    message = str(getattr(outcome, "message", ""))[:200]
    if isinstance(outcome, OutOfMemory):
        return Dropped("too large", message)
    if isinstance(outcome, TimedOut):
        return Dropped("library hangs")
    if is_death(outcome):
        return Dropped("library dies")
    if isinstance(outcome, Unsupported):
        return Dropped("no tensor", message)
    return Dropped("invalid", message)


def _same(one: Sequence[Tensor | None], other: Sequence[Tensor | None]) -> bool:
    """Tell whether two runs gave equal results; any NaN equals any other."""
    if len(one) != len(other):
        return False
    return all(
        a is not None and b is not None and a.dtype == b.dtype and a.shape == b.shape and (a.same(b) or _equal(a, b))
        for a, b in zip(one, other, strict=True)
    )


def _equal(one: Tensor, other: Tensor) -> bool:
    if DTYPES[one.dtype].kind not in ("float", "complex"):
        return False
    return bool(np.array_equal(one.numbers(), other.numbers(), equal_nan=True))


def _spread(value: Tensor | None, moved: Sequence[Tensor | None]) -> Array | None:
    """Return how far each element moved; infinite where it became NaN, or where the shape or type changed."""
    if value is None:
        return None
    if value.dtype == "string":
        return _changed(value, moved)
    centre = wide(value)
    spread = np.zeros(centre.shape)
    for other in moved:
        if other is None or other.shape != value.shape or other.dtype != value.dtype:
            return np.full(centre.shape, np.inf)
        np.maximum(spread, distance(wide(other), centre), out=spread)
    return spread


def _changed(value: Tensor, moved: Sequence[Tensor | None]) -> Array:
    """Return 0 for texts that noise leaves unchanged, infinity for others."""
    spread = np.zeros(value.shape)
    for other in moved:
        if other is None or other.shape != value.shape or other.dtype != value.dtype:
            return np.full(value.shape, np.inf)
        spread[np.asarray(value.array != other.array, bool)] = np.inf
    return spread


def wide(value: Tensor) -> Array:
    """Return elements as float64, or complex128."""
    numbers = value.numbers()
    return np.asarray(numbers, np.complex128 if numbers.dtype.kind == "c" else np.float64)
