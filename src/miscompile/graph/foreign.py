"""Conversion between tensors and numpy arrays of `ml_dtypes`, which onnx's tools use for dtypes that numpy lacks."""

import ml_dtypes
import numpy as np

from miscompile.base.dtypes import DTYPES, SMALL
from miscompile.core.tensor import Array, Tensor, numpy_name, tensor

_NAMES = {
    "bfloat16": "bfloat16",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float4e2m1": "float4_e2m1fn",
    "float6e2m3": "float6_e2m3fn",
    "float6e3m2": "float6_e3m2fn",
    "float8e8m0": "float8_e8m0fnu",
    "int4": "int4",
    "uint4": "uint4",
    "int2": "int2",
    "uint2": "uint2",
}
_FOREIGN = {name: np.dtype(getattr(ml_dtypes, theirs)) for name, theirs in _NAMES.items()}
_OURS = {foreign: name for name, foreign in _FOREIGN.items()}


def to_foreign(value: Tensor) -> Array:
    """Return the elements of `value` in the dtype of ml_dtypes or numpy, as a view where possible."""
    foreign = _FOREIGN.get(value.dtype)
    if foreign is None:
        return value.array
    if DTYPES[value.dtype].kind == "float":
        return value.array.view(foreign)
    return value.numbers().astype(foreign)


def from_foreign(array: Array) -> Tensor:
    """Return an array of ml_dtypes or numpy as a tensor; every kind of text becomes strings."""
    name = _OURS.get(array.dtype)
    if name is None:
        return (
            Tensor("string", array.astype(object))
            if array.dtype.kind in "OU"
            else Tensor(numpy_name(array.dtype), array)
        )
    if name in SMALL and DTYPES[name].kind != "float":
        return tensor(array.astype(np.int64), name)
    return Tensor(name, np.ascontiguousarray(array).reshape(array.shape).view(DTYPES[name].storage))
