"""Steps on element types: all tensors that share a type get another one that the operator allows."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from miscompile.base.dtypes import DTYPES, PLAIN
from miscompile.core.tensor import Array, Tensor, tensor
from miscompile.harvest.neighbours.call import StepView, Variation
from miscompile.instances.values import Held

_TYPES = frozenset({*PLAIN, "complex64", "complex128"})
"""Element types that are tried."""


def element_types(scene: StepView) -> Iterator[Variation]:
    """Yield the instance with the tensors of each group converted to every other type that all of them allow."""
    groups: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    found = scene.tensors()
    for name, value in found.items():
        if name in scene.constraints and DTYPES[value.dtype].kind != "string":
            groups[scene.constraints[name].group, value.dtype].append(name)
    for (_, now), names in groups.items():
        allowed = set.intersection(*(set(scene.constraints[name].dtypes) for name in names))
        for dtype in sorted(allowed & _TYPES - {now}):
            values = {name: Held(converted(found[name], dtype)) for name in names}
            yield Variation(values, f"{', '.join(names)} {now} -> {dtype}")


def converted(value: Tensor, dtype: str) -> Tensor:
    """Return a tensor with its elements rounded to another type; numbers out of range become its ends, NaN zero."""
    wanted = DTYPES[dtype]
    numbers = value.numbers()
    if wanted.kind == "bool":
        return Tensor("bool", np.asarray(numbers != 0))
    if wanted.kind == "complex":
        return Tensor(dtype, np.asarray(numbers, wanted.storage))
    if np.iscomplexobj(numbers):
        numbers = numbers.real
    if wanted.kind in ("int", "uint"):
        whole = numbers if numbers.dtype.kind in "iub" else np.nan_to_num(np.rint(numbers), nan=0.0)
        return tensor(_clipped(whole, int(wanted.low), int(wanted.high)), dtype)
    wide = np.asarray(numbers, np.float64)
    ends = np.where(np.isfinite(wide), np.clip(wide, wanted.low, wanted.high), wide)
    return tensor(ends if dtype == "float64" else ends.astype(np.float32), dtype)


def _clipped(numbers: Array, low: int, high: int) -> Array:
    """Return the numbers within the ends of a type, in an integer type that holds all of them."""
    whole = [max(low, min(high, int(number))) for number in numbers.ravel().tolist()]
    return np.array(whole, np.uint64 if low == 0 else np.int64).reshape(numbers.shape)
