"""What a transform can be: protocols of one or two methods, met by frozen dataclasses whose fields are their options.

A transform may say in a field or attribute `exactness` what it keeps: `bits` (as without one), every bit that a correct
compiler can promise; anything else, values up to rounding.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from miscompile.core.tensor import Tensor
from miscompile.graph.model import Model


@runtime_checkable
class Transform(Protocol):
    """A rewriting that keeps the meaning; a frozen dataclass whose fields are its options."""

    def apply(self, model: Model) -> Model:
        """Return an equivalent model with the same inputs and outputs: the same one for the same model and options.

        Raises RejectedDraft when the model has nothing that this transform could present otherwise.
        """
        ...


@runtime_checkable
class Feeding(Protocol):
    """A transform that changes what is fed as well."""

    def apply_with_feeds(self, model: Model) -> tuple[Model, tuple[tuple[str, Tensor], ...]]:
        """Return the model, and the inputs that it has more at the end, each with what to feed. Raises as `apply`."""
        ...


@runtime_checkable
class Fixing(Protocol):
    """A transform that makes a program for one feed."""

    def apply_to_feed(self, model: Model, feed: Sequence[Tensor]) -> Model:
        """Return a model in which some inputs are constants; the rest keep their order. Raises as `apply`."""
        ...


@runtime_checkable
class Storing(Protocol):
    """A transform of the bytes, not of what they say."""

    def apply_bytes(self, payload: bytes) -> bytes:
        """Return other bytes for the same model. Raises as `apply`."""
        ...

    def places_of_bytes(self, payload: bytes) -> tuple[str, ...]:
        """Return the keys of the parts that this transform can write otherwise."""
        ...


@runtime_checkable
class Sited(Protocol):
    """A transform that changes a program in several places, each of which can be left alone (option `only`)."""

    def places(self, model: Model) -> tuple[str, ...]:
        """Return the keys of the places that this transform changes in `model`, or picks from."""
        ...


@runtime_checkable
class Picking(Protocol):
    """A transform that leaves some of its places alone, by its seed."""

    def picked(self, places: Iterable[str]) -> frozenset[str]:
        """Return those of `places` that it changes. Raises RejectedDraft when there is none."""
        ...
