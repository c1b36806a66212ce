"""The transform `batched`: a program mapped over a new axis by its library (`jax.vmap`, `torch.vmap`).

The first row of the batch is the program's own input, so the first row of each result must be the program's result.
Batched operations may add in another order, which the noise of the unoptimised program covers; exact outputs keep their
bits.
"""

from dataclasses import dataclass

BATCHED = "batched"
"""The name of the transform."""


@dataclass(frozen=True, slots=True)
class Batched:
    """Runs the program on two rows at once: its inputs, and these with the elements of floats in reverse order.

    Reversed floats stay within the domain of the program mostly, and integers, which may be indices, are the same in
    both rows. `seed` exists because every drawn transform gets one; it has no effect.
    """

    seed: int = 0
