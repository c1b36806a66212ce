"""Reading, optimisation and execution of a model by tract; standalone scripts contain these functions."""

import os
import tempfile
from collections.abc import Mapping

import numpy as np
import tract
from numpy.typing import NDArray

FED = frozenset(
    {
        "bool",
        *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
        "float16",
        "float32",
        "float64",
    }
)
"""Element types of tract's tensors, by their names in numpy."""


def optimised(model: bytes) -> tuple[list[str], tract.Runnable]:
    """Read, analyse and optimise a model; return the names of its inputs in tract's order, and what runs.

    The library reads models from files. Raises tract.TractError for a model that it does not read.
    """
    file, path = tempfile.mkstemp(suffix=".onnx")
    try:
        with os.fdopen(file, "wb") as opened:
            opened.write(model)
        read = tract.onnx().load(path).into_model()
    finally:
        os.unlink(path)
    names = [read.input_name(place) for place in range(read.input_count())]
    return names, read.into_runnable()


def evaluate(
    names: list[str], runnable: tract.Runnable, feed: Mapping[str, NDArray[np.generic]]
) -> list[NDArray[np.generic]]:
    """Run on one feed; return the outputs in the order of the model.

    Raises TypeError for an element type that tract's tensors lack.
    """
    for name in names:
        if feed[name].dtype.name not in FED:
            raise TypeError(f"elements of {feed[name].dtype.name} cannot be fed")
    return [to_array(value) for value in runnable.run([feed[name] for name in names])]


def to_array(value: tract.Tensor) -> NDArray[np.generic]:
    """Copy an output; tract computes shapes in a type of its own (TDim), of which its interface shows no elements."""
    try:
        array: NDArray[np.generic] = value.to_numpy()
    except tract.TractError as error:
        if "TDim" not in str(error):
            raise
        array = value.convert_to(tract.DatumType.I64).to_numpy()
    return array
