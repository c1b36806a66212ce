"""Transforms of a program that OpenVINO's adapter applies itself: saved and loaded again, and with external data."""

from dataclasses import dataclass
from typing import Literal

from miscompile.base.specs import Spec
from miscompile.targets.presentations import own_transform


@dataclass(frozen=True, slots=True)
class OpenVinoReload:
    """What has been read is saved and loaded: the model in OpenVINO's own format, or the compiled one as a blob.

    `stage` says after which step. Saving keeps float32 as it is. `seed` is there because every drawn transform gets
    one; it has nothing to draw.
    """

    seed: int = 0
    stage: Literal["compiled", "read"] = "compiled"


@dataclass(frozen=True, slots=True)
class OpenVinoExternal:
    """The model is a file, and its initialisers lie in another, in an order and at offsets by `seed`."""

    seed: int = 0


TRANSFORMS = {"reload": OpenVinoReload, "external": OpenVinoExternal}
"""The transforms by name."""


def settled(transform: Spec) -> Spec:
    """Return a transform as it is. Raises SpecError for one of other options."""
    own_transform(transform, TRANSFORMS)
    return transform
