"""The transforms that the adapter for XLA applies: export to StableHLO and import, a batch, derivatives."""

from dataclasses import dataclass

from miscompile.base.specs import Spec
from miscompile.targets.batching import BATCHED, Batched
from miscompile.targets.derivatives import DERIVATIVE, Derivative
from miscompile.targets.presentations import own_transform


@dataclass(frozen=True, slots=True)
class XlaReload:
    """Exports the function with `jax.export` to serialised StableHLO, reads that again, and compiles the call of the
    result.

    The artifact is the portable form that JAX promises to keep compatible
    (https://docs.jax.dev/en/latest/export/export.html), so it has the meaning of the function, and XLA gets the same
    operations inside a function of their own. `seed` exists because every drawn transform gets one; it has no effect.
    """

    seed: int = 0


TRANSFORMS = {"reload": XlaReload, BATCHED: Batched, DERIVATIVE: Derivative}
"""The transforms by name."""


def settled(transform: Spec) -> Spec:
    """Return a transform unchanged. Raises SpecError for invalid options."""
    own_transform(transform, TRANSFORMS)
    return transform
