"""Ranges of integers, (least, greatest), and arithmetic on them; without TVM.

Standalone scripts contain the text of this file, so it has plain functions and few imports.
"""

import re
from collections.abc import Iterable
from typing import NoReturn

IntegerRange = tuple[int, int]


class OverflowsError(ValueError):
    """An integer that cannot be proven to stay within its type."""


def unproven(why: str) -> NoReturn:
    """Raise OverflowsError."""
    raise OverflowsError(why)


def full(dtype: str) -> IntegerRange | None:
    """Return the least and the greatest number of an element type of integers; None for other types."""
    found = re.fullmatch(r"(u?)int(\d+)", dtype)
    if dtype == "bool" or not found:
        return (0, 1) if dtype == "bool" else None
    bits = int(found[2])
    return (0, 2**bits - 1) if found[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def is_vector(dtype: str) -> bool:
    """Tell whether an element type of loops is a vector of integers, such as `int32x4`."""
    return re.fullmatch(r"u?int\d+x.+", dtype) is not None


def limited(dtype: str, bound: int | None) -> IntegerRange | None:
    """Return the integers of an element type whose magnitude is at most `bound`, all of them without one."""
    limits = full(dtype)
    return limits if limits is None or bound is None else (max(limits[0], -bound), min(limits[1], bound))


def hull(spans: Iterable[IntegerRange]) -> IntegerRange:
    """Return the smallest range that contains all of `spans`."""
    found = list(spans)
    return min(low for low, _ in found), max(high for _, high in found)


def products(one: IntegerRange, other: IntegerRange) -> IntegerRange:
    """Return the range of a product."""
    found = [a * b for a in one for b in other]
    return min(found), max(found)


def magnitudes(one: IntegerRange) -> IntegerRange:
    """Return the range of the magnitude of a number."""
    low, high = one
    return (0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


def summed(one: IntegerRange, count: int) -> IntegerRange:
    """Return the range of the sum of up to `count` numbers, and of every partial sum."""
    return min(0, count * one[0]), max(0, count * one[1])


def multiplied(one: IntegerRange, count: int) -> IntegerRange:
    """Return the range of the product of up to `count` numbers, and of every partial product."""
    most = max(1, magnitudes(one)[1]) ** min(count, 64) if count else 1
    return (-most if one[0] < 0 else 0), most


def of_bits(*spans: IntegerRange) -> IntegerRange:
    """Return the range of any bitwise combination of numbers."""
    low, high = hull(spans)
    most = (1 << max(high, -low - 1, 0).bit_length()) - 1
    return (-most - 1 if low < 0 else 0), most
