"""Transforms of a program that Inductor's adapter applies itself: of other decompositions, and of related operators."""

from dataclasses import dataclass

from miscompile.base.errors import SpecError
from miscompile.base.specs import Spec
from miscompile.targets.presentations import own_transform


@dataclass(frozen=True, slots=True)
class Decomposed:
    """A `share` of the table of decompositions is left out, drawn by `seed`.

    Values are kept as the levels keep them: what is exact in a program's own operators is exact in all that they
    decompose into, and the rest moves by rounding, which the unoptimised program's noise covers.
    """

    seed: int = 0
    share: float = 0.5

    def __post_init__(self) -> None:
        """Raise SpecError for a share that is none."""
        _need_probability(self.share)


@dataclass(frozen=True, slots=True)
class Related:
    """A `share` of the calls, drawn by `seed`, is made to a related operator: an alias, a method, one after another.

    Related operators keep every bit, but for those of one after another. These round once more, by what the noise of
    the unoptimised program covers, and no operator that is ever exact has any.
    """

    seed: int = 0
    share: float = 0.5

    def __post_init__(self) -> None:
        """Raise SpecError for a share that is none."""
        _need_probability(self.share)


def _need_probability(share: float) -> None:
    if not 0 <= share <= 1:
        raise SpecError("share is a probability: a number from 0 to 1")


TRANSFORMS = {"decomposed": Decomposed, "related": Related}
"""The transforms by name."""


def settled(transform: Spec) -> Spec:
    """Return a transform as it is. Raises SpecError for one of other options."""
    own_transform(transform, TRANSFORMS)
    return transform
