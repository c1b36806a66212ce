"""The pattern: a piece of a graph that an optimisation looks for, with what was seen of it.

A pattern has two forms. The concrete one is a graph with fixed types, as it stood where it was found. The abstract
one is a motif, which keeps only what its operators ask for: sizes are names, and several dtypes serve (OATest,
section 3.2.1). One that was written by us has the abstract form only, one that cannot be generalised the
concrete one only.
"""

from dataclasses import dataclass
from typing import Literal, NamedTuple

from miscompile.ops.seed import Seed
from miscompile.patterns.language import Motif, MotifCall

Granularity = Literal["block", "subgraph"]
"""What an optimisation works on: a contiguous region with one computation, or a whole connected unit."""


class Trigger(NamedTuple):
    """A pass (or rule) that was SEEN to change a program with the pattern, and on which version of which target."""

    target: str
    version: str
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """A fragment of a program.

    The holes of the concrete form are the inputs of `seed` that are not pinned, its broken outputs are the outputs.
    `origin` says where the pattern comes from: a test's file and name, a model, the catalogue. At least one form is
    there.
    """

    name: str
    seed: Seed | None
    motif: Motif | None
    granularity: Granularity
    triggers: tuple[Trigger, ...] = ()
    origin: str = ""

    def __post_init__(self) -> None:
        """Refuse a pattern without a form."""
        if self.seed is None and self.motif is None:
            raise ValueError(f"pattern {self.name} has neither form")

    @property
    def operators(self) -> tuple[str, ...]:
        """Operators in order, with repetition."""
        if self.seed is not None:
            return self.seed.operators
        assert self.motif is not None
        return tuple(one.op for one in self.motif.statements if isinstance(one, MotifCall))

    def triggers_on(self, target: str) -> frozenset[str]:
        """Return the passes of the target called `target` that the pattern was seen to wake, on any version."""
        return frozenset(wake.name for wake in self.triggers if wake.target == target)
