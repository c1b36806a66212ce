"""The transform `batched`: a program mapped over a new axis by its library (`jax.vmap`, `torch.vmap`).

Both rows of the batch are the program's own input, so the first row of each result must be the program's result.
Batched operations may add in another order, which the noise of the unoptimised program covers; exact outputs keep their
bits.
"""

from dataclasses import dataclass

BATCHED = "batched"
"""The name of the transform."""


@dataclass(frozen=True, slots=True)
class Batched:
    """Runs the program on two equal rows at once.

    Other values in the second row could leave the domain of the program: an index out of range, a loop without end.
    `seed` exists because every drawn transform gets one; it has no effect.
    """

    seed: int = 0
