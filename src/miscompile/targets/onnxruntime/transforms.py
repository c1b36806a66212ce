"""Transforms that ONNX Runtime's adapter applies: other ways to store a model, and to use a session."""

from dataclasses import dataclass
from typing import Literal

from miscompile.base.specs import Spec
from miscompile.targets.guards import GUARDED, Guarded
from miscompile.targets.presentations import own_transform


@dataclass(frozen=True, slots=True)
class OrtReload:
    """A session saves its optimised model in `format`; another session loads it without further optimisation.

    The loaded model computes the same bits as the saved one ("offline mode" in the documentation of graph
    optimisations). `seed` exists because every drawn transform gets one; it has no effect.
    """

    seed: int = 0
    format: Literal["onnx", "ort"] = "onnx"


@dataclass(frozen=True, slots=True)
class OrtExternal:
    """The model is in one file and its weights in another, in an order and at offsets drawn by `seed`.

    Integers of rank 0 and 1 and all other operands that shape inference reads remain in the model, because ONNX
    Runtime uses onnx's inference, which reads no external data.
    """

    seed: int = 0


@dataclass(frozen=True, slots=True)
class OrtConcurrent:
    """The session runs on every feed in `threads` threads at once, and each result must be that of a run alone.

    ONNX Runtime's documentation says that `Run` may be called from several threads. `seed` has no effect.
    """

    seed: int = 0
    threads: int = 3


@dataclass(frozen=True, slots=True)
class OrtBound:
    """Inputs and outputs are bound to memory that several runs use; the session has its arena and memory patterns.

    The results of the last run count. `seed` has no effect.
    """

    seed: int = 0


TRANSFORMS = {
    "reload": OrtReload, "external": OrtExternal, "concurrent": OrtConcurrent, "bound": OrtBound, GUARDED: Guarded,
}  # fmt: skip
"""The transforms by name."""


def settled(transform: Spec) -> Spec:
    """Return a transform unchanged. Raises SpecError for invalid options."""
    own_transform(transform, TRANSFORMS)
    return transform
