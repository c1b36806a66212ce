"""What a definition gets: the operands and attributes of one call of an ONNX operator."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from miscompile.core.tensor import Array


@dataclass(frozen=True, slots=True)
class EvaluatedCall:
    """One call: `operands` (None for one that is left out), the `attributes` that the node has, the opset of the
    model, and for each result whether it has a name.

    Attributes that are left out are not in the mapping, because their defaults depend on the opset.
    """

    operands: tuple[Array | None, ...]
    attributes: Mapping[str, Any]
    opset: int
    named: tuple[bool, ...]

    def operand(self, place: int) -> Array:
        """Return an operand that must be there. Raises IndexError where it is left out."""
        found = self.optional(place)
        if found is None:
            raise IndexError(f"operand {place} is left out")
        return found

    def optional(self, place: int) -> Array | None:
        """Return an operand, or None where it is left out."""
        return self.operands[place] if place < len(self.operands) else None

    def integer(self, name: str, default: int) -> int:
        """Return an integer attribute."""
        return int(self.attributes.get(name, default))

    def real(self, name: str, default: float) -> float:
        """Return a float attribute, which ONNX holds in 32 bits."""
        return float(np.float32(self.attributes.get(name, default)))

    def text(self, name: str, default: str) -> str:
        """Return a text attribute."""
        return str(self.attributes.get(name, default))

    def integers(self, name: str) -> tuple[int, ...] | None:
        """Return a list of integers, or None where it is left out."""
        found = self.attributes.get(name)
        return None if found is None else tuple(int(one) for one in found)


Definition = Callable[[EvaluatedCall], Sequence[Array | None] | None]
"""A definition returns the results, or None for a call that it leaves to onnx's evaluator."""


def wide(value: Array) -> Array:
    """Return numbers in the type in which definitions compute before they round once: at least float32.

    It is not wider, because a step that overflows in a compiler must overflow here as well: results that hide it, as
    those of an activation do, would differ.
    """
    if value.dtype.itemsize > np.dtype(np.float64).itemsize:
        return value
    narrow = value.dtype.itemsize <= np.dtype(np.float32).itemsize and value.dtype.kind not in "iu"
    return np.asarray(value).astype(np.float32 if narrow else np.float64)
