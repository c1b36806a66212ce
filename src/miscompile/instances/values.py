"""The values of an operator's parameters: a closed set of plain values, so that no instance needs `eval`.

Numbers, texts, tuples, lists and dicts are Python's own. Objects that only a library can make (an element type, a
function, an initializer) are stored by name: `Name` is looked up and `Made` is called again.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.core.tensor import Tensor, tensor

NameKind = Literal["dtype", "layout", "memory_format", "device", "function", "special"]
"""`dtype`: an ONNX name of an element type; `function`: an import path; `special`: `Ellipsis`, `NotImplemented`. The
others are the library's own names.
"""

_WORDS = 1 << 63
"""Integers are drawn from -`_WORDS` to `_WORDS`, the end excluded."""


@dataclass(frozen=True, slots=True)
class Name:
    """A named object of the library, such as an element type or a function."""

    kind: NameKind
    name: str


@dataclass(frozen=True, slots=True)
class SliceValue:
    """A slice: `x[start:stop:step]`."""

    start: "Value" = None
    stop: "Value" = None
    step: "Value" = None


@dataclass(frozen=True, slots=True)
class Made:
    """An object that `api` makes when it is called with these values: an initializer, a layer inside another layer."""

    api: str
    args: tuple["Value", ...] = ()
    kwargs: Mapping[str, "Value"] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A tensor with its values, as the test gave it."""

    tensor: Tensor

    def __eq__(self, other: object) -> bool:
        """Tell whether both hold the same bits."""
        return isinstance(other, Held) and self.tensor.same(other.tensor)

    def __hash__(self) -> int:
        return hash((self.tensor.dtype, self.tensor.shape))


@dataclass(frozen=True, slots=True)
class Drawn:
    """A tensor whose values do not matter: drawn evenly from `low` to `high` (excluded for integers) by `seed`."""

    dtype: str
    shape: tuple[int, ...]
    low: float = -1.0
    high: float = 1.0
    seed: int = 0

    def drawable(self) -> bool:
        """Tell whether the interval is not empty, and not too wide for the generator."""
        kind = DTYPES[self.dtype].kind
        if kind in ("int", "uint"):
            low = int(self.low)
            return low >= -_WORDS and max(int(self.high), low + 1) <= _WORDS
        if kind == "string":
            return False
        return kind == "bool" or (self.low <= self.high and math.isfinite(float(self.high) - float(self.low)))

    def tensor(self) -> Tensor:
        """Return the tensor; the same recipe gives the same bits in every process."""
        rng = np.random.default_rng(self.seed)
        kind = DTYPES[self.dtype].kind
        if kind == "bool":
            return Tensor("bool", rng.integers(0, 2, self.shape).astype(bool))
        if kind in ("int", "uint"):
            return tensor(rng.integers(int(self.low), max(int(self.high), int(self.low) + 1), self.shape), self.dtype)
        values = rng.uniform(self.low, self.high, self.shape)
        if kind == "complex":
            values = values + 1j * rng.uniform(self.low, self.high, self.shape)
            return Tensor(self.dtype, np.asarray(values, DTYPES[self.dtype].storage))
        return tensor(np.asarray(values), self.dtype)


@dataclass(frozen=True, slots=True)
class Slot:
    """The place of input number `index` of the program that an instance is made into."""

    index: int
    dtype: str
    shape: tuple[int, ...]


Value: TypeAlias = (
    bool | int | float | complex | str | Name | SliceValue | Made | Held | Drawn | Slot
    | tuple["Value", ...] | list["Value"] | dict["Value", "Value"] | None
)  # fmt: skip
"""A parameter."""


def mapped(value: Value, change: Callable[[Value], Value]) -> Value:
    """Return `value` with `change` applied to its leaves, in order."""
    match value:
        case tuple():
            return tuple(mapped(item, change) for item in value)
        case list():
            return [mapped(item, change) for item in value]
        case dict():
            return {key: mapped(item, change) for key, item in value.items()}
        case SliceValue(start, stop, step):
            return SliceValue(mapped(start, change), mapped(stop, change), mapped(step, change))
        case Made(api, args, kwargs):
            given = {name: mapped(item, change) for name, item in kwargs.items()}
            return Made(api, tuple(mapped(item, change) for item in args), given)
        case _:
            return change(value)


def leaves(value: Value) -> Iterator[Value]:
    """Yield the leaves of `value`, in order."""
    match value:
        case tuple() | list():
            for item in value:
                yield from leaves(item)
        case dict():
            for item in value.values():
                yield from leaves(item)
        case SliceValue(start, stop, step):
            for part in (start, stop, step):
                yield from leaves(part)
        case Made(_, args, kwargs):
            for item in (*args, *kwargs.values()):
                yield from leaves(item)
        case _:
            yield value


def tensor_of(value: "Held | Drawn") -> Tensor:
    """Return the tensor itself."""
    return value.tensor if isinstance(value, Held) else value.tensor()
