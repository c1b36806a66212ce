"""Lowering of ONNX models to source text of JAX programs; the adapter and the script writer use it, and it does not
import JAX."""

from collections.abc import Collection

from miscompile.graph.model import Model
from miscompile.targets.lowering.program import Lowered, lower
from miscompile.targets.lowering.table import load

LOWERINGS = "miscompile.targets.xla.lowering"


def program(model: Model, taken: Collection[str] = ()) -> Lowered:
    """Return `model` as a function of jax.numpy arrays, without the names `taken`. Raises UnloweredError for a
    construct without a lowering.
    """
    return lower(model, load(LOWERINGS), taken)
