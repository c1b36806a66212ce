"""The pattern: a fragment that an optimisation matches, with the passes that it was observed to trigger.

A pattern has two forms. The concrete one is a graph with fixed types, as found. The abstract one is a motif with only
the constraints of its operators: sizes are names, and several dtypes are possible (OATest, section 3.2.1). A pattern
written by hand has the abstract form only, one that cannot be generalised the concrete form only.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from miscompile.ops.seed import Seed
from miscompile.patterns.language import Motif

Granularity = Literal["block", "subgraph"]
"""The scope of an optimisation: a contiguous region with one computation, or a whole connected unit."""


class Trigger(NamedTuple):
    """A pass (or rule) that was OBSERVED to change a program with the pattern, with target and version."""

    target: str
    version: str
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """A fragment of a program.

    The holes of the concrete form are the inputs of `seed` that are not pinned, its broken outputs are the outputs.
    `origin` names its source: a test's file and name, a model, the catalogue. At least one form is present.
    """

    name: str
    seed: Seed | None
    motif: Motif | None
    granularity: Granularity
    triggers: tuple[Trigger, ...] = ()
    origin: str = ""

    def __post_init__(self) -> None:
        """Raise for a pattern without a form."""
        if self.seed is None and self.motif is None:
            raise ValueError(f"pattern {self.name} has neither form")

    @property
    def operators(self) -> tuple[str, ...]:
        """Operators in order, with repetition."""
        if self.seed is not None:
            return self.seed.operators
        assert self.motif is not None
        return self.motif.operators

    def triggers_on(self, target: str) -> frozenset[str]:
        """Return the passes of the target called `target` that the pattern was observed to trigger, on any version."""
        return frozenset(trigger.name for trigger in self.triggers if trigger.target == target)
