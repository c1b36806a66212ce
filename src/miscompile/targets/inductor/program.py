"""ONNX models as source text of torch programs; used by the adapter and by the script writer, without torch."""

from miscompile.graph.model import Model
from miscompile.targets.lowering.program import Lowered, lower
from miscompile.targets.lowering.table import load

LOWERINGS = "miscompile.targets.inductor.lowering"


def program(model: Model) -> Lowered:
    """Return `model` as a function of torch tensors. Raises UnloweredError for what has no lowering."""
    return lower(model, load(LOWERINGS))
