"""Calls of onnxruntime.transformers.optimizer; standalone scripts contain the functions that they need."""

from collections.abc import Collection

import onnx
from onnxruntime.transformers.fusion_options import FusionOptions
from onnxruntime.transformers.optimizer import optimize_by_fusion


def fused(before: bytes, level: str, off: Collection[str], kind: str = "bert") -> bytes:
    """Return the model after the fusions for models of a `kind`, without those that are `off`; there is one level."""
    del level
    options = FusionOptions(kind)
    for name in off:
        if hasattr(options, f"enable_{name}"):
            setattr(options, f"enable_{name}", False)
    model = optimize_by_fusion(onnx.load_model_from_string(before), kind, optimization_options=options).model
    result: bytes = model.SerializeToString()
    return result
