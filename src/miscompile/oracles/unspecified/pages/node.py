"""One node of ONNX as the conditions of its operator's page look at it."""

from collections.abc import Callable
from dataclasses import dataclass

from miscompile.base.dtypes import DTYPES
from miscompile.core.tensor import Tensor
from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn, Held, tensor_of


@dataclass(frozen=True, slots=True)
class NodeView:
    """The operands and attributes of an instance, as conditions look at them."""

    instance: Instance

    def tensor(self, place: int) -> Tensor | None:
        """Return an operand, None if it is absent or no tensor."""
        given = self.instance.inputs
        value = given[place] if place < len(given) else None
        return tensor_of(value) if isinstance(value, Held | Drawn) else None

    def shape(self, place: int) -> tuple[int, ...] | None:
        """Return the shape of an operand, None if it is absent."""
        found = self.tensor(place)
        return None if found is None else found.shape

    def numbers(self, place: int) -> list[float]:
        """Return the elements of an operand, none if it is absent or has no real numbers."""
        found = self.tensor(place)
        if found is None or DTYPES[found.dtype].kind in ("complex", "string"):
            return []
        return [float(item) for item in found.numbers().ravel().tolist()]

    def whole(self, name: str, default: int) -> int:
        """Return an integer attribute."""
        value = self.instance.kwargs.get(name, default)
        return value if isinstance(value, int) else default

    def number(self, name: str, default: float) -> float:
        """Return a float attribute."""
        value = self.instance.kwargs.get(name, default)
        return float(value) if isinstance(value, int | float) else default

    def text(self, name: str, default: str) -> str:
        """Return a text attribute."""
        value = self.instance.kwargs.get(name, default)
        return value if isinstance(value, str) else default

    def whole_list(self, name: str) -> list[int]:
        """Return a list of integers, empty if it is left out."""
        value = self.instance.kwargs.get(name, ())
        return [item for item in value if isinstance(item, int)] if isinstance(value, tuple | list) else []


PageCondition = Callable[[NodeView], bool]
"""Tells whether a node fulfils a condition."""
