"""Live objects of Python and Keras as the plain values of an instance."""

# ruff: noqa: ANN401 - anything can be a parameter

import zlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.core.tensor import Tensor
from miscompile.harvest.libraries.hooks import keras_names
from miscompile.harvest.libraries.hooks.keras_names import KerasNames
from miscompile.harvest.libraries.hooks.recording import NotEncodable
from miscompile.instances.values import Drawn, Held, Made, Name, SliceValue, Value
from miscompile.targets.keras.source import THEIRS
from miscompile.targets.keras.values import wrapped

keras = keras_names.keras

MOST_ELEMENTS = 1 << 16
"""The most elements of a tensor whose values are stored; floats of larger ones are drawn again from the same range."""

_MOST_DRAWN = 1 << 22
_OURS = {theirs: ours for ours, theirs in THEIRS.items()}
_BATCH, _SIZE = 2, 3
"""Replacements of unknown sizes of a symbol: the first, and the others."""

KerasMade = Callable[[Any], "Made | None"]
"""Returns a layer's construction; None if it was not recorded."""


class ValueEncoder:
    """Encodes parameters as values. `made_of` encodes layers; it may raise NotEncodable."""

    def __init__(self, names: KerasNames, made_of: KerasMade) -> None:
        self._names, self._made_of = names, made_of

    def value(self, item: Any) -> Value:
        """Return `item` as a value. Raises NotEncodable with the reason if it has no encoding."""
        kind = type(item)
        if item is None or kind in (bool, int, float, complex, str):
            return item  # type: ignore[no-any-return]
        if isinstance(item, np.generic):
            return self.value(item.item())
        if isinstance(item, tuple | list):
            parts = [self.value(one) for one in item]
            return parts if isinstance(item, list) else tuple(parts)
        if isinstance(item, Mapping):
            return {self.value(key): self.value(one) for key, one in item.items()}
        if isinstance(item, slice):
            return SliceValue(*(self.value(part) for part in (item.start, item.stop, item.step)))
        if item is Ellipsis:
            return Name("special", "Ellipsis")
        if isinstance(item, keras.KerasTensor):
            return symbol_value(item)
        if isinstance(item, np.ndarray | keras.Variable) or keras.ops.is_tensor(item):
            return tensor_value(item)
        return self._thing(item)

    def _thing(self, item: Any) -> Value:
        if isinstance(item, np.dtype):
            return Name("dtype", dtype_name(item.name))
        if isinstance(item, keras.layers.Layer):
            made = self._made_of(item)
            if made is None:
                raise NotEncodable("a layer that is not Keras' own")
            return made
        if isinstance(item, type) and issubclass(item, np.generic):
            return Name("dtype", dtype_name(np.dtype(item).name))
        path = self._names.path(item)
        if path is not None:
            return Name("function", path)
        path = self._names.path(type(item))
        if path is None or not hasattr(item, "get_config"):
            raise NotEncodable("a function without a public name" if callable(item) else f"a {type(item).__name__}")
        return Made(path, (), {name: self.value(one) for name, one in item.get_config().items()})


def dtype_name(name: str) -> str:
    """Return ONNX's name of the element type `name` of Keras or numpy. Raises NotEncodable for types that ONNX
    lacks."""
    ours = _OURS.get(name, name)
    if ours not in DTYPES:
        raise NotEncodable(f"element type {name}")
    return ours


def symbol_value(symbol: Any) -> Drawn:
    """Return a recipe for a symbol: its type and shape, with small sizes for unknown ones."""
    if symbol.shape is None or getattr(symbol, "sparse", False) or getattr(symbol, "ragged", False):
        raise NotEncodable("a sparse, ragged or shapeless symbol")
    shape = tuple(
        (_SIZE if place else _BATCH) if size is None else int(size) for place, size in enumerate(symbol.shape)
    )
    return drawn(dtype_name(keras.backend.standardize_dtype(symbol.dtype)), shape)


def drawn(dtype: str, shape: tuple[int, ...], low: float = -1.0, high: float = 1.0) -> Drawn:
    """Return a recipe for a tensor of unknown values: floats around zero, integers that are valid indices
    everywhere."""
    if DTYPES[dtype].kind == "string" or int(np.prod(shape, dtype=np.int64)) > _MOST_DRAWN:
        raise NotEncodable(
            "texts" if DTYPES[dtype].kind == "string" else f"a tensor of more than {_MOST_DRAWN} elements"
        )
    if DTYPES[dtype].kind in ("int", "uint"):
        low, high = 0.0, 2.0
    recipe = Drawn(dtype, shape, low, high, zlib.crc32(repr((dtype, shape)).encode()) % 1000)
    if not recipe.drawable():
        raise NotEncodable("numbers that lie too far apart to be drawn")
    return recipe


def tensor_value(item: Any) -> Held | Drawn:
    """Return a tensor with its values, or a recipe for a large one. Raises NotEncodable for one without values."""
    if "Tracer" in type(item).__name__ or getattr(item, "sparse", False) or "BCOO" in type(item).__name__:
        raise NotEncodable("a traced or sparse tensor")
    array = item if isinstance(item, np.ndarray) else np.asarray(keras.ops.convert_to_numpy(item))
    if array.dtype.kind in "OUSMm" or (array.dtype.kind == "V" and array.dtype.fields is not None):
        raise NotEncodable(f"an array of {array.dtype}")
    value = wrapped(np.array(array))
    dtype_name(value.dtype)
    if array.size > MOST_ELEMENTS:
        return _recipe(value)
    return Held(value)


def _recipe(value: Tensor) -> Drawn:
    if DTYPES[value.dtype].kind != "float":
        raise NotEncodable(f"integers of more than {MOST_ELEMENTS} elements")
    numbers = np.asarray(value.numbers(), np.float64)
    finite = numbers[np.isfinite(numbers)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (-1.0, 1.0)
    return drawn(value.dtype, value.shape, low, high)
