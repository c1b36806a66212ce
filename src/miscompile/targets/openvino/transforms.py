"""Transforms that OpenVINO's adapter applies: saving and loading, and external data."""

from dataclasses import dataclass
from typing import Literal

from miscompile.base.specs import Spec
from miscompile.targets.guards import GUARDED, Guarded
from miscompile.targets.presentations import own_transform


@dataclass(frozen=True, slots=True)
class OpenVinoReload:
    """Saves and loads the model in OpenVINO's format, or the compiled model as a blob.

    `stage` selects which of both. Saving does not compress float32. `seed` exists because every drawn transform gets
    one; it has no effect.
    """

    seed: int = 0
    stage: Literal["compiled", "read"] = "compiled"


@dataclass(frozen=True, slots=True)
class OpenVinoExternal:
    """The model is in one file and its initialisers in another, in an order and at offsets drawn by `seed`."""

    seed: int = 0


TRANSFORMS = {"reload": OpenVinoReload, "external": OpenVinoExternal, GUARDED: Guarded}
"""The transforms by name."""


def settled(transform: Spec) -> Spec:
    """Return a transform unchanged. Raises SpecError for invalid options."""
    own_transform(transform, TRANSFORMS)
    return transform
