"""Calls of onnx's version converter; standalone scripts contain the functions that they need."""

from collections.abc import Collection
from contextlib import suppress

import onnx
from onnx import version_converter

DEFAULT = 25


def converted(before: bytes, level: str, off: Collection[str], to: int = DEFAULT) -> bytes:
    """Return the model in the operator set `to`, and at level `full` back again where there is a way back."""
    del off
    model = onnx.load_model_from_string(before)
    own = next(one.version for one in model.opset_import if one.domain in ("", "ai.onnx"))
    there = version_converter.convert_version(model, to)
    if level == "full":
        with suppress(Exception):  # many operators have no way back, which is said in many ways
            there = version_converter.convert_version(there, own)
    result: bytes = there.SerializeToString()
    return result
