"""Calls of onnxslim; standalone scripts contain the functions that they need."""

from collections.abc import Collection
from typing import Any

import onnx
import onnxslim

STEPS = ["constant_folding", "dead_node_elimination", "subexpression_elimination", "weight_tying"]


def optimise(before: bytes, level: str, off: Collection[str]) -> bytes:
    """Return the model without the patterns and steps that are `off`; there is one level."""
    result: bytes = onnxslim.slim(onnx.load_model_from_string(before), **switches(off)).SerializeToString()
    return result


def switches(off: Collection[str]) -> dict[str, Any]:
    """Return the arguments that switch patterns and steps off."""
    return {
        "skip_fusion_patterns": [name for name in sorted(off) if name not in STEPS],
        "skip_optimizations": [name for name in STEPS if name in off],
        "no_shape_infer": "shape_inference" in off,
    }
