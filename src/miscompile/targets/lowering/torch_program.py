"""Lowering of ONNX models to source text of torch programs; adapters and the script writer use it, and it does
not import torch."""

from collections.abc import Collection

from miscompile.graph.model import Model
from miscompile.targets.lowering.program import Lowered, lower
from miscompile.targets.lowering.table import load

LOWERINGS = "miscompile.targets.lowering.torch"


def program(model: Model, taken: Collection[str] = ()) -> Lowered:
    """Return `model` as a function of torch tensors, in which nothing has one of the names `taken`.

    Raises UnloweredError for what has no lowering.
    """
    return lower(model, load(LOWERINGS), taken)
