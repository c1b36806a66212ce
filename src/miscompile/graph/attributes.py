"""Attributes from plain Python values, so that samplers and rules need not spell out each attribute's kind."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from miscompile.core.tensor import Tensor
from miscompile.graph.model import NO_ATTRIBUTES, Attribute, Graph

PlainValue: TypeAlias = int | float | str | Tensor | Graph | Sequence[int] | Sequence[float] | Sequence[str] | Attribute


def attribute(value: PlainValue) -> Attribute:
    """Return the attribute whose kind follows from the type of `value` (bool counts as int).

    A float stays a float even when it is whole; write `2.0`, not `2`, for float attributes. An empty sequence
    has no type, so the caller must pass an Attribute. Raises TypeError for anything else.
    """
    if isinstance(value, Attribute):
        return value
    if isinstance(value, bool | int):
        return Attribute("int", int(value))
    if isinstance(value, float):
        return Attribute("float", value)
    if isinstance(value, str):
        return Attribute("string", value)
    if isinstance(value, Tensor):
        return Attribute("tensor", value)
    if isinstance(value, Graph):
        return Attribute("graph", value)
    return _plural(value)


def _plural(value: Sequence[int] | Sequence[float] | Sequence[str]) -> Attribute:
    if not value:
        raise TypeError("an empty sequence has no attribute kind; pass Attribute('ints', ()) or the like")
    first = value[0]
    if isinstance(first, str):
        return Attribute("strings", tuple(value))
    if isinstance(first, float):
        return Attribute("floats", tuple(float(item) for item in value))
    return Attribute("ints", tuple(int(item) for item in value))


def attributes(values: Mapping[str, PlainValue | None]) -> Mapping[str, Attribute]:
    """Convert a mapping. Entries that are None are omitted, so the operator uses its default."""
    if not values:
        return NO_ATTRIBUTES
    return {name: attribute(value) for name, value in values.items() if value is not None}
