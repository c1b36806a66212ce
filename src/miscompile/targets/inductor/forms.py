"""The form of a program that Inductor's adapter presents itself: taken apart by another table of decompositions."""

from dataclasses import dataclass

from miscompile.base.errors import SpecError


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
        if not 0 <= self.share <= 1:
            raise SpecError("share is a probability: a number from 0 to 1")


FORMS = {"decomposed": Decomposed}
"""The form by name."""
