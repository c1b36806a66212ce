"""Lowering of ONNX models to source text that makes graphs of LiteRT; the adapter and the script writer use it, and it
does not import LiteRT."""

from collections.abc import Collection

from miscompile.graph.model import Model
from miscompile.targets.litert import tensors
from miscompile.targets.lowering.program import Lowered, lower
from miscompile.targets.lowering.table import load

LOWERINGS = "miscompile.targets.litert.lowering"

BUILDERS = tuple(name for name in dir(tensors) if not name.startswith("_"))
"""Names that lowerings use, and that no value may have."""


def program(model: Model, taken: Collection[str] = ()) -> Lowered:
    """Return `model` as a function of symbolic tensors, without the names `taken`.

    Raises UnloweredError for a construct without a lowering.
    """
    return lower(model, load(LOWERINGS), {*taken, *BUILDERS, "math"})
