"""Calls of onnxconverter-common's float16 conversion; standalone scripts contain the functions that they need."""

from collections.abc import Collection

import onnx
from onnxconverter_common import float16


def optimise(before: bytes, level: str, off: Collection[str]) -> bytes:
    """Return the model in half precision, with the original types of inputs and outputs.

    By default the converter moves constants above 10,000 to that number, which is documented; float16 holds more.
    """
    del level, off
    loaded = onnx.load_model_from_string(before)
    model = float16.convert_float_to_float16(loaded, max_finite_val=65504.0, keep_io_types=True)
    result: bytes = model.SerializeToString()
    return result
