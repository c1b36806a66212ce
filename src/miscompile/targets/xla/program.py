"""ONNX models as source text of JAX programs; used by the adapter and by the script writer, without JAX."""

from miscompile.graph.model import Model
from miscompile.targets.lowering.program import Lowered, lower
from miscompile.targets.lowering.table import load

LOWERINGS = "miscompile.targets.xla.lowering"


def program(model: Model) -> Lowered:
    """Return `model` as a function of jax.numpy arrays. Raises UnloweredError for what has no lowering."""
    return lower(model, load(LOWERINGS))
