"""Lowering of ONNX models to source text that makes networks of ncnn; the adapter and the script writer use it, and it
does not import ncnn."""

from collections.abc import Collection

from miscompile.graph.model import Model
from miscompile.targets.lowering.program import Lowered, lower
from miscompile.targets.lowering.table import load
from miscompile.targets.ncnn import tensors

LOWERINGS = "miscompile.targets.ncnn.lowering"

BUILDERS = tuple(name for name in dir(tensors) if not name.startswith("_"))
"""Names that lowerings use, and that no value may have."""


def program(model: Model, taken: Collection[str] = ()) -> Lowered:
    """Return `model` as a function of symbolic tensors, without the names `taken`.

    Raises UnloweredError for a construct without a lowering.
    """
    return lower(model, load(LOWERINGS), {*taken, *BUILDERS, "math"})
