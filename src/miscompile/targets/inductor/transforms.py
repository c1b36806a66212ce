"""Transforms that Inductor's adapter applies: other decompositions, related operators, inputs in guarded memory or with
other strides, batches, derivatives."""

from dataclasses import dataclass

from miscompile.base.errors import SpecError
from miscompile.base.specs import Spec
from miscompile.targets.batching import BATCHED, Batched
from miscompile.targets.derivatives import DERIVATIVE, Derivative
from miscompile.targets.guards import GUARDED, Guarded
from miscompile.targets.presentations import own_transform


@dataclass(frozen=True, slots=True)
class Decomposed:
    """Omits a `share` of the table of decompositions, drawn by `seed`.

    Exact operators decompose into exact ones. The results of others change by rounding only, which the noise of the
    unoptimised program covers.
    """

    seed: int = 0
    share: float = 0.5

    def __post_init__(self) -> None:
        """Raise SpecError for a share that is none."""
        _need_probability(self.share)


@dataclass(frozen=True, slots=True)
class Related:
    """Replaces a `share` of the calls, drawn by `seed`, by related operators: an alias, a method, or a composition.

    Aliases and methods compute the same bits. A composition rounds once more, which the noise of the unoptimised
    program covers, and no exact operator has one.
    """

    seed: int = 0
    share: float = 0.5

    def __post_init__(self) -> None:
        """Raise SpecError for a share that is none."""
        _need_probability(self.share)


@dataclass(frozen=True, slots=True)
class StridedInputs:
    """Gives the inputs other strides, drawn by `seed`, when the program is compiled and when it runs.

    The elements are the same. A sum may add them in another order, which the noise of the unoptimised program covers.
    """

    seed: int = 0


def _need_probability(share: float) -> None:
    if not 0 <= share <= 1:
        raise SpecError("share is a probability: a number from 0 to 1")


TRANSFORMS = {
    "decomposed": Decomposed,
    "related": Related,
    "strided": StridedInputs,
    GUARDED: Guarded,
    BATCHED: Batched,
    DERIVATIVE: Derivative,
}
"""The transforms by name."""


def settled(transform: Spec) -> Spec:
    """Return a transform unchanged. Raises SpecError for invalid options."""
    own_transform(transform, TRANSFORMS)
    return transform
