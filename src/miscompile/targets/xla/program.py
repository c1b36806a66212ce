"""ONNX models as source text of JAX programs; used by the adapter and by the script writer, without JAX."""

from collections.abc import Collection

from miscompile.graph.model import Model
from miscompile.targets.lowering.program import Lowered, lower
from miscompile.targets.lowering.table import load

LOWERINGS = "miscompile.targets.xla.lowering"


def program(model: Model, taken: Collection[str] = ()) -> Lowered:
    """Return `model` as a function of jax.numpy arrays, in which nothing has one of the names `taken`.

    Raises UnloweredError for what has no lowering.
    """
    return lower(model, load(LOWERINGS), taken)
