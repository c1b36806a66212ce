"""Transforms of a program that ONNX Runtime's adapter applies itself: saved and loaded, and with external data."""

from dataclasses import dataclass
from typing import Literal

from miscompile.base.specs import Spec
from miscompile.targets.presentations import own_transform


@dataclass(frozen=True, slots=True)
class OrtReload:
    """The session saves what it has optimised, as `format` says; another loads it and optimises no further.

    A loaded model computes what the saved one does ("offline mode" of its documentation on graph optimisations), to
    the bit. `seed` is there because every drawn transform gets one; it has nothing to draw.
    """

    seed: int = 0
    format: Literal["onnx", "ort"] = "onnx"


@dataclass(frozen=True, slots=True)
class OrtExternal:
    """The model is a file, and its weights lie in another, in an order and at offsets by `seed`.

    Integers of rank 0 and 1 stay inside, and whatever else shape inference reads, which is onnx's own here and takes no
    external data.
    """

    seed: int = 0


TRANSFORMS = {"reload": OrtReload, "external": OrtExternal}
"""The transforms by name."""


def settled(transform: Spec) -> Spec:
    """Return a transform as it is. Raises SpecError for one of other options."""
    own_transform(transform, TRANSFORMS)
    return transform
