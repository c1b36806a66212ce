"""The transform that the toy's adapter applies: runs with guarded memory."""

from miscompile.base.specs import Spec
from miscompile.targets.guards import GUARDED, Guarded
from miscompile.targets.presentations import own_transform

TRANSFORMS = {GUARDED: Guarded}
"""The transforms by name."""


def settled(transform: Spec) -> Spec:
    """Return a transform unchanged. Raises SpecError for invalid options."""
    own_transform(transform, TRANSFORMS)
    return transform
