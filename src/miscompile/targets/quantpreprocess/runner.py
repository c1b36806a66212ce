"""Calls of ONNX Runtime's quant_pre_process; standalone scripts contain the functions that they need."""

import os
import tempfile
from collections.abc import Collection

import onnx
from onnxruntime.quantization.shape_inference import quant_pre_process


def optimise(before: bytes, level: str, off: Collection[str]) -> bytes:
    """Return the prepared model, without the steps that are `off`; there is one level."""
    del level
    with tempfile.TemporaryDirectory() as folder:
        path, here = os.path.join(folder, "prepared.onnx"), os.getcwd()
        os.chdir(folder)  # a shape inference that fails leaves its model in the current folder
        try:
            quant_pre_process(
                onnx.load_model_from_string(before),
                path,
                skip_symbolic_shape="symbolic_shape" in off,
                skip_optimization="optimization" in off,
                skip_onnx_shape="onnx_shape" in off,
            )
        finally:
            os.chdir(here)
        result: bytes = onnx.load(path).SerializeToString()
    return result
