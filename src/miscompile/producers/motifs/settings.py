"""Attributes of planted calls: translation of a motif's attributes to ONNX, and mutation to other valid values.

The kind of an attribute comes from the operator's schema, because `alpha=1` and `axes=()` do not determine it.
"""

import math
import random
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import TypeAlias

import numpy as np

from miscompile.base.dtypes import DTYPES, NUMBERS, is_float
from miscompile.base.errors import RejectedDraft
from miscompile.core.tensor import Tensor, tensor
from miscompile.graph.attributes import attribute
from miscompile.graph.model import Attribute
from miscompile.ops.registry import schema
from miscompile.patterns.language import TYPING, AttributeSetting, Elements, Size, Word

PlainSetting: TypeAlias = int | float | str | tuple[int, ...] | tuple[float, ...] | tuple[str, ...] | Tensor

_FLAGS = frozenset(
    {"keepdims", "transA", "transB", "ceil_mode", "count_include_pad", "exclusive", "reverse", "largest"}
)
"""Attributes for which both 0 and 1 are valid."""


class Dictionary:
    """The bindings of a motif's names in one planting: its dtype, and the sizes bound so far."""

    def __init__(self, dtype: str, sizes: dict[str, int], size: Callable[[Size], int]) -> None:
        """Take the live table of `sizes`, and `size`, which draws one for a name that is not in it."""
        self._dtype, self._sizes, self._size = dtype, sizes, size

    def plain(self, name: str, setting: AttributeSetting) -> PlainSetting:
        """Return the value of attribute `name`, with every name in it replaced."""
        if isinstance(setting, str) and name in TYPING:
            return DTYPES[self._dtype if setting == "T" else str(setting)].code
        if isinstance(setting, Elements):
            return self.elements(setting)
        if isinstance(setting, tuple):
            return tuple([self._element(item) for item in setting])  # type: ignore[return-value]
        if isinstance(setting, Word):
            return str(setting)
        if isinstance(setting, str) and setting in self._sizes:
            return self._sizes[setting]
        return setting

    def elements(self, given: Elements) -> Tensor:
        """Return the tensor; an integer type of the motif's choice rounds its elements and clips them.

        Raises RejectedDraft where the type has no such elements.
        """
        dtype = given.dtype or self._dtype
        values = [self._size(item) if isinstance(item, str) else item for item in given.values]
        if given.dtype is None and not is_float(dtype):
            info = DTYPES[dtype]
            if not all(map(math.isfinite, values)):
                raise RejectedDraft(f"{dtype} has no infinities, and no NaN")
            values = [int(min(max(round(value), info.low), info.high)) for value in values]
        sizes = (len(values),) if given.sizes is None else given.sizes
        wide = np.asarray(values, np.float64 if is_float(dtype) else np.uint64 if dtype == "uint64" else np.int64)
        return tensor(wide.reshape(sizes), dtype)

    def _element(self, item: Size | float) -> int | float | str:
        if isinstance(item, Word):
            return str(item)
        return self._size(item) if isinstance(item, str) else item


def wrapped(op: str, opset: int, name: str, value: PlainSetting) -> Attribute:
    """Return the attribute with the kind in the schema, else with the kind that the value implies."""
    if isinstance(value, int | str):
        return _kept(op, opset, name, value)
    return _wrapped(_kinds(op, opset).get(name, ""), value)


@lru_cache(1 << 12, typed=True)
def _kept(op: str, opset: int, name: str, value: int | str) -> Attribute:
    return _wrapped(_kinds(op, opset).get(name, ""), value)


def _wrapped(kind: str, value: PlainSetting) -> Attribute:
    if kind == "float" and isinstance(value, int):
        return attribute(float(value))
    if kind == "floats" and isinstance(value, tuple):
        return Attribute("floats", tuple([float(item) for item in value]))
    if isinstance(value, tuple) and not value:
        return Attribute("strings" if kind == "strings" else "ints", ())
    return attribute(value)


@cache
def _kinds(op: str, opset: int) -> dict[str, str]:
    """Return the kind of every attribute of an operator, as the schema calls it: `int`, `floats` and so on."""
    known = schema(op, opset)
    return {} if known is None else {name: said.type.name.lower() for name, said in known.attributes.items()}


def other_value(rng: random.Random, name: str, value: PlainSetting) -> PlainSetting | None:
    """Return another valid value of an attribute; None omits it, which means its default."""
    if name == "axis":
        return rng.choice([0, 1, -1, -2])
    if rng.random() < 0.5:
        return None
    if name in _FLAGS and isinstance(value, int):
        return 1 - value
    if name == "perm" and isinstance(value, tuple):
        return tuple(rng.sample([int(item) for item in value], len(value)))
    if name == "axes" and isinstance(value, tuple) and value:
        return near(rng, [int(item) for item in value])
    if isinstance(value, float):
        return value * rng.choice([0.5, 2.0])
    return None


def from_the_other_end(value: PlainSetting, rank: int) -> PlainSetting:
    """Return the same axes of a tensor of `rank`, counted from the back instead of the front or the reverse."""
    match value:
        case int():
            return value + (rank if value < 0 else -rank)
        case tuple():
            return tuple([int(axis) + (rank if int(axis) < 0 else -rank) for axis in value])
        case _:
            return value


def near(rng: random.Random, values: Sequence[int]) -> tuple[int, ...]:
    """Return `values` with one of them equal to another, or nearer to zero, so that valid positions stay valid."""
    place = int(rng.random() * len(values))
    value = values[place]
    others = [
        *(one for one in values if one != value),
        *((value - 1 if value > 0 else value + 1,) if abs(value) > 1 else ()),
    ]
    return (*values[:place], rng.choice(others) if others else value, *values[place + 1 :])


def nudged(rng: random.Random, value: Tensor) -> Tensor:
    """Return `value`, numbers of a type that numpy has, with one element changed slightly."""
    flat = value.array.ravel()
    if not flat.size or value.dtype not in NUMBERS or value.dtype == "bfloat16":
        return value
    if not is_float(value.dtype):
        changed = np.asarray(near(rng, flat.tolist()), flat.dtype)
    else:
        changed = flat.copy()
        changed[int(rng.random() * flat.size)] *= flat.dtype.type(0.5)
    return Tensor(value.dtype, changed.reshape(value.array.shape))
