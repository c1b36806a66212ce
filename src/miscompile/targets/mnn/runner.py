"""Conversion, loading and execution of a model by MNN; standalone scripts contain these functions.

The converter is called through the extension module, because MNN's Python wrapper of it (`mnnconvert`) installs a
package with pip and sends statistics.
"""

import os
import tempfile
from collections.abc import Callable, Mapping

import _tools
import MNN.expr as expr
import MNN.nn as nn
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

STORED = {"float32": expr.float, "int32": expr.int, "int64": expr.int, "bool": expr.int}
"""Element types of inputs, with those in which MNN stores them."""

AS = {"int64": np.int32, "bool": np.int32}
"""The arrays that hold the elements of types which MNN stores in others."""


class Mnn:
    """A loaded model: `module`, the names of its inputs, and the element types of its outputs."""

    def __init__(self, model: bytes, level: str) -> None:
        read = onnx.load_model_from_string(model)
        self.inputs = [value.name for value in read.graph.input]
        names = [value.name for value in read.graph.output]
        self.kinds = [helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type) for value in read.graph.output]
        with tempfile.TemporaryDirectory() as folder:
            path = convert(model, folder, level)
            self.module = nn.load_module_from_file(path, self.inputs, names, precision_mode=expr.PrecisionMode.High)
        if self.module is None:
            raise RuntimeError("MNN does not load what its converter has written")


def convert(model: bytes, folder: str, level: str) -> str:
    """Convert a model; return the path of the result. Raises RuntimeError with what the converter printed."""
    source, path = os.path.join(folder, "model.onnx"), os.path.join(folder, "model.mnn")
    with open(source, "wb") as file:
        file.write(model)
    options = ["--convertMatmulToConv", "1" if level == "full" else "0"]
    # Exact GELU, and no flush of subnormal constants to zero.
    options += ["--useGeluApproximation", "0"]
    options += ["--alignDenormalizedValue", "0"]
    command = ["mnnconvert", "-f", "ONNX", "--modelFile", source, "--MNNModel", path, "--bizCode", "none", *options]
    done, printed = heard(lambda: _tools.mnnconvert(command))
    if not done or not os.path.exists(path):
        raise RuntimeError(f"the converter fails: {printed[-2000:]}")
    return path


def heard(call: Callable[[], object]) -> tuple[object, str]:
    """Return the result of `call`, and what it printed to the process' standard streams."""
    with tempfile.TemporaryFile() as file:
        kept = {number: os.dup(number) for number in (1, 2)}
        for number in kept:
            os.dup2(file.fileno(), number)
        try:
            result = call()
        finally:
            for number, copy in kept.items():
                os.dup2(copy, number)
                os.close(copy)
        file.seek(0)
        return result, file.read().decode(errors="replace")


def evaluate(loaded: Mnn, feed: Mapping[str, NDArray[np.generic]]) -> list[NDArray[np.generic]]:
    """Run on one feed; return the outputs in the order of the model.

    Raises TypeError for an element type that MNN's inputs lack, and RuntimeError when outputs are missing, with what
    a second run prints, because the engine only prints why it gives up.
    """
    given = [to_var(feed[name]) for name in loaded.inputs]
    results = loaded.module.forward(given)
    if len(results) != len(loaded.kinds):
        _, printed = heard(lambda: loaded.module.forward(given))
        raise RuntimeError(f"MNN returns {len(results)} of {len(loaded.kinds)} outputs: {printed[-2000:]}")
    return [from_var(value, kind) for value, kind in zip(results, loaded.kinds, strict=True)]


def to_var(array: NDArray[np.generic]) -> expr.Var:
    """Wrap an input."""
    name = array.dtype.name
    if name not in STORED:
        raise TypeError(f"elements of {name} cannot be fed")
    held = np.ascontiguousarray(array.astype(AS.get(name, array.dtype)))
    return expr.const(held, list(array.shape), expr.NCHW, STORED[name])


def from_var(value: expr.Var, kind: "np.dtype[np.generic]") -> NDArray[np.generic]:
    """Copy an output, as elements of the type that the model declares."""
    if 0 in value.shape:  # Var.read fails where there is nothing to read
        return np.empty(value.shape, kind)
    plain = expr.convert(value, expr.NCHW) if value.data_format == expr.NC4HW4 else value
    array = np.array(plain.read()).reshape(plain.shape)
    return array.astype(kind) if kind.name in AS else array
