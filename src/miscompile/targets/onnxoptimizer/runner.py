"""Calls of onnxoptimizer; standalone scripts contain the functions that they need."""

from collections.abc import Collection

import onnx
import onnxoptimizer

OTHERS = ["adjust_add", "set_unique_name_for_nodes", "replace_einsum_with_matmul", "adjust_slice_and_matmul"]
"""Passes that level `full` runs before the default ones."""


def optimise(before: bytes, level: str, off: Collection[str]) -> bytes:
    """Return the model after the passes of a level, without those that are `off`."""
    names = [*(OTHERS if level == "full" else []), *onnxoptimizer.get_fuse_and_elimination_passes()]
    chosen = [name for name in names if name not in off]
    result: bytes = onnxoptimizer.optimize(onnx.load_model_from_string(before), chosen).SerializeToString()
    return result
