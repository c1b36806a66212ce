"""Plainer elements in feeds and initialisers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.core.tensor import Array, Tensor, tensor
from miscompile.triage.reduce.cost import oddity
from miscompile.triage.reduce.draft import Draft
from miscompile.triage.reduce.leaves import Change, all_leaves, changed, operands_with, structural

Fill = Callable[[Array], Array]

_ZERO_POINTS = frozenset({"int8", "uint8", "int16", "uint16", "int4", "uint4", "int2", "uint2", "int32"})
"""Element types of zero points and biases, for which zero is the plainest."""


def _whole(numbers: Array) -> Array:
    finite = np.nan_to_num(np.asarray(numbers, np.float64), nan=1.0, posinf=8.0, neginf=-8.0)
    return np.clip(np.rint(finite), -8, 8)


def _one_element(place: int) -> Fill:
    """All zero but for one element, rounded to a small whole number (1 where that is zero)."""

    def fill(numbers: Array) -> Array:
        result = np.zeros(numbers.shape)
        if numbers.size:
            result.flat[place % numbers.size] = _whole(numbers).flat[place % numbers.size] or 1
        return result

    return fill


def _only_special(numbers: Array) -> Array:
    """Ones, but for NaN and infinities, which some bugs need."""
    given = np.asarray(numbers, np.float64)
    return np.where(np.isfinite(given), 1.0, given)


_FILLS: tuple[Fill, ...] = (
    lambda numbers: np.zeros(numbers.shape),
    lambda numbers: np.ones(numbers.shape),
    lambda numbers: np.full(numbers.shape, 2.0),
    lambda numbers: np.arange(numbers.size, dtype=np.float64).reshape(numbers.shape),
    _one_element(0),
    _one_element(-1),
    _only_special,
    _whole,
    lambda numbers: np.rint(np.asarray(numbers, np.float64) * 4) / 4,
    lambda numbers: np.round(np.asarray(numbers, np.float64), 2),
)
"""From the plainest elements to those closest to the original. The cost rejects those that are not plainer."""


@dataclass(frozen=True, slots=True)
class PlainerValues:
    """Fills leaves with zeros, ones, twos, a count, one element that is not zero, whole numbers, quarters,
    hundredths.

    All leaves at once first, then one at a time. It does not change leaves that determine shapes. Scales of
    quantisation and trip counts get ones in place of zeros, because a reader would take the zero for the cause.
    """

    def edits(self, draft: Draft) -> Iterator[Draft]:
        """Yield drafts with plainer elements."""
        fixed = structural(draft)
        found = [leaf for leaf in all_leaves(draft) if leaf.name not in fixed and _numeric(leaf.value)]
        positive = operands_with(draft, "quantisation", "control")
        odd = [leaf.name for leaf in found if oddity(leaf.value) > 0 or leaf.fed]
        if len(odd) > 1:
            for fill in _FILLS:
                yield changed(draft, set(odd), _filled(fill, positive))
        for name in odd:
            for fill in _FILLS:
                yield changed(draft, {name}, _filled(fill, positive))


def _numeric(value: Tensor) -> bool:
    return value.array.dtype.kind in "fiub" and not value.dtype.startswith("float8")


def _filled(fill: Fill, positive: set[str]) -> Change:
    def change(name: str, value: Tensor) -> Tensor:
        info = DTYPES[value.dtype]
        filled = fill(value.numbers())
        plain = np.where(np.isfinite(filled), np.clip(filled, info.low, info.high), filled)
        if name in positive and value.dtype not in _ZERO_POINTS:
            plain = np.where(plain == 0, 1, plain)
        return tensor(plain != 0 if value.dtype == "bool" else plain, value.dtype)

    return change
