"""Conditions of unspecified behaviour, under the names that `data/unspecified.toml` uses.

Each takes the instance, whose parameters may be numbers as well as tensors, and the feed.
"""

import math
from collections.abc import Callable, Mapping

import numpy as np

from miscompile.base.dtypes import BY_CODE, DTYPES, SMALL_INTEGERS
from miscompile.core.case import Feed
from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn, Held, tensor_of
from miscompile.oracles.unspecified.operands import common, numbers, operand, pair, tensors_of, whole
from miscompile.oracles.unspecified.window_conditions import meets_padding_only, pads_in_two_ways

Condition = Callable[[Instance, Feed], bool]

_LONG = 1000
"""Elements of a range of floats from which on adding the step again and again is off by more than other rounding."""

_FAR = 1e5
"""Coordinates of GridSample from which float32 has fewer than eight bits for the place within an element."""


def _shifts_too_far(instance: Instance, feed: Feed) -> bool:
    """A shift by a negative number of bits, or by as many as there are: undefined in C++."""
    value, places = pair(instance)
    by, shifted = whole(places), common(value, places)
    return by is not None and shifted is not None and bool(((by < 0) | (by >= shifted.bits)).any())


def _divides_by_zero(instance: Instance, feed: Feed) -> bool:
    """An integer divided by zero, or the least integer by minus one."""
    above, below = pair(instance)
    by, divided, kind = whole(below), whole(above), common(above, below)
    if by is None or divided is None or kind is None:
        return False
    return bool((by == 0).any() or ((by == -1).any() and (divided == kind.low).any()))


def _raised_too_far(instance: Instance, feed: Feed) -> bool:
    """A power of an integer, given as an integer, that its type does not hold, or with a negative exponent.

    Only ONNX gives integers for exponents that are floats.
    """
    base, exponent = pair(instance)
    low, high = whole(base), numbers(exponent)
    kind = common(base) if instance.library == "onnx" else common(base, exponent)
    if low is None or high is None or kind is None or not high.size:
        return False
    if high.dtype.kind == "f" and instance.library != "onnx":
        return False
    if high.dtype.kind in "iu" and (high < 0).any():
        return True
    if any(1 != one != other != 1 for one, other in zip(low.shape[::-1], high.shape[::-1], strict=False)):
        return False  # no valid node: the operands do not broadcast
    with np.errstate(all="ignore"):
        power = np.power(np.asarray(low, np.float64), np.asarray(high, np.float64))
    return not bool(((power >= kind.low) & (power < kind.high + 1)).all())


def _has_negative_variance(place: int) -> Condition:
    """Return the condition that the operand at `place` is a variance that is used and has a negative element."""

    def condition(instance: Instance, feed: Feed) -> bool:
        words, usual = ("training", "use_input_stats", "training_mode"), instance.operator == "instance_norm"
        given = numbers(operand(instance, place, "running_var"))
        if given is None or operand(instance, 5, *words, default=usual):
            return False  # absent, or replaced by the variance of the batch
        return bool((given < 0).any())

    return condition


def _all_whole(instance: Instance, feed: Feed) -> bool:
    """All operands are integers."""
    given = tensors_of(instance, feed)
    return bool(given) and all(DTYPES[value.dtype].kind in ("int", "uint") for value in given)


def _has_double(instance: Instance, feed: Feed) -> bool:
    """An operand is float64."""
    return any(value.dtype == "float64" for value in tensors_of(instance, feed))


def _third_is_true(instance: Instance, feed: Feed) -> bool:
    """The third operand is true, as for Dropout in training mode."""
    given = numbers(operand(instance, 2))
    return given is not None and bool(given.any())


def _is_not_finite(instance: Instance, feed: Feed) -> bool:
    """An element is infinite or NaN."""
    floats = [value for value in tensors_of(instance, feed) if DTYPES[value.dtype].kind == "float"]
    return not all(np.isfinite(value.numbers()).all() for value in floats)


def _clips(instance: Instance, feed: Feed) -> bool:
    """A recurrent layer clips its gates."""
    return instance.parameters().get("clip") is not None


def _second_is_empty(instance: Instance, feed: Feed) -> bool:
    """There is a second operand without elements."""
    given = numbers(operand(instance, 1))
    return given is not None and not given.size


def _third_is_given(instance: Instance, feed: Feed) -> bool:
    """There is a third operand."""
    return operand(instance, 2) is not None


def _interpolates_integers(instance: Instance, feed: Feed) -> bool:
    """The first operand holds integers or truth values, and results lie between its elements."""
    usual = "linear" if instance.operator == "GridSample" else "nearest"
    return instance.parameters().get("mode", usual) != "nearest" and _first_is_whole(instance)


def _first_is_whole(instance: Instance) -> bool:
    given = numbers(operand(instance, 0))
    return given is not None and given.dtype.kind in "iub"


def _meets_fraction(instance: Instance, feed: Feed) -> bool:
    """Integers are multiplied by a fraction, or one is added to them."""
    factors = [instance.parameters().get(name) for name in ("alpha", "beta", "bias")]
    return _first_is_whole(instance) and any(isinstance(one, float) and not one.is_integer() for one in factors)


def _becomes_four_bits(instance: Instance, feed: Feed) -> bool:
    """NaN becomes float4e2m1, which has none; the second operand or `to` names the type."""
    like, to, given = operand(instance, 1), instance.parameters().get("to"), numbers(operand(instance, 0))
    named = tensor_of(like).dtype if isinstance(like, Held | Drawn) else ""
    if given is None or given.dtype.kind != "f" or (named != "float4e2m1" and to != DTYPES["float4e2m1"].code):
        return False
    return bool(np.isnan(given).any())


def _rounds_to_few_bits(instance: Instance, feed: Feed) -> bool:
    """A fraction becomes an integer of fewer than eight bits; the second operand or `to` names the type."""
    like, to, given = operand(instance, 1), instance.parameters().get("to"), numbers(operand(instance, 0))
    code = to if isinstance(to, int) and to in BY_CODE else 0
    named = tensor_of(like).dtype if isinstance(like, Held | Drawn) else BY_CODE[code].name if code else ""
    if given is None or given.dtype.kind != "f" or named not in SMALL_INTEGERS:
        return False
    return not bool((np.floor(given) == given).all())


def _is_empty(instance: Instance, feed: Feed) -> bool:
    """The first operand has no elements."""
    given = numbers(operand(instance, 0))
    return given is not None and not given.size


def _has_no_range(instance: Instance, feed: Feed) -> bool:
    """All elements are zero, or there are none."""
    given = numbers(operand(instance, 0))
    return given is not None and not np.asarray(given).any()


def _sum_overflows(instance: Instance, feed: Feed) -> bool:
    """The sum, the sum of squares or the product of signed integers may exceed their type: undefined in C++."""
    given = whole(operand(instance, 0))
    kind = common(operand(instance, 0))
    if given is None or kind is None or kind.kind != "int":
        return False
    sizes = [abs(int(item)) for item in given.ravel().tolist()]
    if instance.operator == "ReduceProd":
        return math.prod(size for size in sizes if size) > kind.high
    squared = instance.operator in ("ReduceL2", "ReduceSumSquare")
    return sum(size * size if squared else size for size in sizes) > kind.high


def _products_overflow(instance: Instance, feed: Feed) -> bool:
    """A sum of products of integers may exceed their type, where some compilers wrap and others saturate."""
    given = [whole(value) for value in instance.inputs]
    kind, equation = common(*instance.inputs), instance.parameters().get("equation")
    if kind is None or any(one is None for one in given):
        return False
    sizes = [np.abs(np.asarray(one, np.float64)) for one in given if one is not None]
    try:
        sums = np.einsum(equation, *sizes) if isinstance(equation, str) else np.matmul(*sizes[:2])
    except (ValueError, TypeError, MemoryError):
        return False  # no valid node
    return bool((np.asarray(sums) >= float(kind.high) + 1).any())  # a double does not hold the end of 64 bits


def _variance_vanishes(instance: Instance, feed: Feed) -> bool:
    """The mean of the squares is nearly the square of the mean, so that their difference is rounding."""
    given, axes = numbers(operand(instance, 0)), instance.parameters().get("axes", (0, 2, 3))
    if given is None or not isinstance(axes, tuple | list):
        return False
    where = tuple({int(axis) % max(given.ndim, 1) for axis in axes if isinstance(axis, int)})
    if not given.size or any(axis >= given.ndim for axis in where):
        return False
    wide = np.asarray(given, np.float64)
    squares, mean = (wide * wide).mean(axis=where), wide.mean(axis=where)
    return bool((squares - mean * mean <= 1e-4 * squares + 1e-10).any())


def _squares_overflow(instance: Instance, feed: Feed) -> bool:
    """The square of an element, or of several together, exceeds its type."""
    given = operand(instance, 0)
    if not isinstance(given, Held | Drawn) or not tensor_of(given).array.size:
        return False
    value = tensor_of(given)
    largest = float(np.abs(np.asarray(value.numbers(), np.float64)).max())
    return not largest * largest * value.array.size <= DTYPES[value.dtype].high


def _has_further_results(instance: Instance, feed: Feed) -> bool:
    """More than the first result has a name."""
    return sum(map(bool, instance.results)) > 1


def _reduces_truth_values(instance: Instance, feed: Feed) -> bool:
    """Truth values are added to each other, or multiplied, or compared."""
    given = numbers(operand(instance, 0))
    return instance.parameters().get("reduction", "none") != "none" and given is not None and given.dtype.kind == "b"


def _bounds_are_reversed(instance: Instance, feed: Feed) -> bool:
    """The attribute `lambd` is negative, so that some elements are below the one bound and above the other."""
    bound = instance.parameters().get("lambd", 0.5)
    return isinstance(bound, int | float) and bound < 0


def _region_of_no_size(instance: Instance, feed: Feed) -> bool:
    """A region ends where it starts, so that there is no sample whose mean to take."""
    regions = numbers(operand(instance, 1))
    if instance.parameters().get("sampling_ratio", 0) or regions is None or regions.ndim != 2 or regions.shape[1] != 4:
        return False
    return bool((regions[:, 2:] <= regions[:, :2]).any())


def _adds_often(instance: Instance, feed: Feed) -> bool:
    """A range of floats is long."""
    given = [numbers(operand(instance, place)) for place in range(3)]
    if any(one is None or one.dtype.kind != "f" or one.size != 1 for one in given):
        return False
    start, limit, delta = (float(one.item()) for one in given if one is not None)
    return delta != 0 and bool(abs((limit - start) / delta) > _LONG)


def _samples_far_away(instance: Instance, feed: Feed) -> bool:
    """A coordinate lies so far outside that its type does not hold the place between two elements."""
    grid = numbers(operand(instance, 1))
    return grid is not None and not bool((np.abs(np.asarray(grid, np.float64)) < _FAR).all())


CONDITIONS: Mapping[str, Condition] = {
    "shifts too far": _shifts_too_far,
    "divides by zero": _divides_by_zero,
    "a power that no integer holds": _raised_too_far,
    "all operands are integers": _all_whole,
    "an operand is float64": _has_double,
    "an operand is not finite": _is_not_finite,
    "third operand is true": _third_is_true,
    "an integer reduction overflows": _sum_overflows,
    "products of integers overflow": _products_overflow,
    "the variance vanishes": _variance_vanishes,
    "squares overflow": _squares_overflow,
    "automatic padding is open": pads_in_two_ways,
    "a window of padding only": meets_padding_only,
    "further results are named": _has_further_results,
    "a clip is given": _clips,
    "second operand is empty": _second_is_empty,
    "third operand is given": _third_is_given,
    "interpolated integers": _interpolates_integers,
    "first operand is empty": _is_empty,
    "a fraction beside integers": _meets_fraction,
    "NaN becomes float4e2m1": _becomes_four_bits,
    "a fraction becomes few bits": _rounds_to_few_bits,
    "no range": _has_no_range,
    "truth values are reduced": _reduces_truth_values,
    "the bounds are reversed": _bounds_are_reversed,
    "samples far outside": _samples_far_away,
    "a region of no size": _region_of_no_size,
    "a long range of floats": _adds_often,
    "third operand is a negative variance": _has_negative_variance(2),
    "fifth operand is a negative variance": _has_negative_variance(4),
}
