"""The kinds of transforms: protocols of one or two methods, implemented by frozen dataclasses whose fields are their
options.

A field or attribute `exactness` tells what a transform preserves: with `bits` (the default) every bit that a correct
compiler preserves, with any other value the results up to rounding.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

from miscompile.core.case import Feed
from miscompile.core.tensor import Tensor
from miscompile.graph.model import Model


@runtime_checkable
class Transform(Protocol):
    """A rewriting that preserves the meaning; a frozen dataclass whose fields are its options."""

    def apply(self, model: Model) -> Model:
        """Return an equivalent model with the same inputs and outputs; deterministic for a model and options.

        Raises RejectedDraft when the transform cannot change the model.
        """
        ...


@runtime_checkable
class Feeding(Protocol):
    """A transform that changes the feeds as well."""

    def apply_with_feeds(self, model: Model) -> tuple[Model, tuple[tuple[str, Tensor], ...]]:
        """Return the model and its additional inputs, which come last, with their values. Raises as `apply`."""
        ...


@runtime_checkable
class Fixing(Protocol):
    """A transform that specialises the program for one feed."""

    def apply_to_feed(self, model: Model, feed: Sequence[Tensor]) -> Model:
        """Return a model in which some inputs are constants; the others keep their order. Raises as `apply`."""
        ...


@runtime_checkable
class Reforming(Protocol):
    """A change of the only call of a program into another one, which has other results.

    Only an oracle that compares no values may ask for it.
    """

    def apply_to_case(self, model: Model, feeds: Sequence[Feed]) -> tuple[Model, tuple[Feed, ...]]:
        """Return the other program and its feeds, as many as before. Raises as `apply`."""
        ...


@runtime_checkable
class Storing(Protocol):
    """A transform of the serialised bytes that does not change the model."""

    def apply_bytes(self, payload: bytes) -> bytes:
        """Return a different serialisation of the same model. Raises as `apply`."""
        ...

    def places_of_bytes(self, payload: bytes) -> tuple[str, ...]:
        """Return the keys of the parts that this transform can serialise differently."""
        ...


@runtime_checkable
class Sited(Protocol):
    """A transform that changes a program in several places, each of which can be excluded (option `only`)."""

    def places(self, model: Model) -> tuple[str, ...]:
        """Return the keys of the places that this transform changes in `model`, or from which it picks."""
        ...


@runtime_checkable
class Picking(Protocol):
    """A transform that changes only some of its places, depending on its seed."""

    def picked(self, places: Iterable[str]) -> frozenset[str]:
        """Return the elements of `places` that it changes. Raises RejectedDraft when there is none."""
        ...
