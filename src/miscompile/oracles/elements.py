"""The elements of an output that two builds compute, for the report of a finding: which are wrong, by which bound."""

from typing import Any

import numpy as np

from miscompile.core.tensor import Array, Tensor, text_of
from miscompile.graph.text.elements import format_elements
from miscompile.oracles.compare import difference

MOST = 64
"""Elements that a finding stores at most; reduced programs rarely have more."""


def compared(want: Tensor | None, got: Tensor | None, allowed: Array | float = 0.0) -> list[dict[str, Any]]:
    """Return the elements of two outputs as JSON objects.

    Each has `place` (its index), the texts `reference` and `faulty`, the number `allowed`, and whether it is `wrong`.
    `allowed` is the difference that the rule allows, for each element or for all. An output with more than 64 elements
    gives its first 64 wrong ones. Empty when the outputs differ in type or shape, or are complex.
    """
    if (
        want is None
        or got is None
        or want.dtype != got.dtype
        or want.shape != got.shape
        or want.array.dtype.kind == "c"
    ):
        return []
    bound = np.broadcast_to(np.asarray(allowed, np.float64), want.shape).reshape(-1)
    wrong = _wrong(want, got, bound)
    places = np.arange(wrong.size) if wrong.size <= MOST else np.flatnonzero(wrong)[:MOST]
    texts = zip(_texts(want, places), _texts(got, places), strict=True)
    return [
        {
            "place": [int(one) for one in np.unravel_index(place, want.shape)],
            "reference": reference, "faulty": faulty, "allowed": float(bound[place]), "wrong": bool(wrong[place]),
        }
        for place, (reference, faulty) in zip(places, texts, strict=True)
    ]  # fmt: skip


def _wrong(want: Tensor, got: Tensor, bound: Array) -> Array:
    if want.dtype == "string":
        return np.asarray(want.array.reshape(-1) != got.array.reshape(-1), bool)
    return np.asarray(difference(want, got).reshape(-1) > bound, bool)


def _texts(value: Tensor, places: Array) -> list[str]:
    flat = value.array.reshape(-1)[places]
    return [text_of(one) for one in flat] if value.dtype == "string" else format_elements(Tensor(value.dtype, flat))
