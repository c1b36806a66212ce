"""Live objects of Python and PyTorch as the plain values of an instance.

The current elements of a tensor are stored: without gradient, with conjugation and negation applied, contiguous.
Strides are not stored, so a test of unusual strides becomes one of ordinary ones.
"""

# ruff: noqa: ANN401 - anything can be a parameter

import importlib
import zlib
from collections import OrderedDict
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch

from miscompile.base.dtypes import DTYPES
from miscompile.core.tensor import Tensor
from miscompile.harvest.libraries.hooks.recording import NotEncodable
from miscompile.instances.values import Drawn, Held, Made, Name, SliceValue, Value

MOST_ELEMENTS = 1 << 16
"""The most elements of a tensor whose values are stored; floats of larger ones are drawn again from the same range."""

_MOST_DRAWN = 1 << 24
"""The most elements of any tensor that is stored."""

_OTHER_NAMES = {
    "float8_e4m3fn": "float8e4m3fn",
    "float8_e4m3fnuz": "float8e4m3fnuz",
    "float8_e5m2": "float8e5m2",
    "float8_e5m2fnuz": "float8e5m2fnuz",
    "float8_e8m0fnu": "float8e8m0",
}
"""Element types whose names in torch and ONNX differ."""

_WORDS = {1: torch.uint8, 2: torch.int16}
"""The dtype as which a tensor is viewed if numpy lacks its own, by the bytes of an element."""

_IMPORTABLE = frozenset({"torch", "math", "operator", "builtins"})
"""Packages whose functions can be encoded by name."""

TorchMade = Callable[[Any], "Made | None"]
"""Returns a module's construction; None if it was not recorded."""


def unseen(module: object) -> Made | None:
    """Return None: no construction was recorded."""
    del module
    return None


def value_of(item: Any, made_of: TorchMade = unseen) -> Value:
    """Return `item` as a value. Raises NotEncodable with the reason if it has no encoding."""
    kind = type(item)
    if item is None or kind in (bool, int, float, complex, str):
        return item  # type: ignore[no-any-return]
    if isinstance(item, torch.Tensor):
        return tensor_value(item)
    if kind in (list, tuple, dict, OrderedDict, torch.Size) or hasattr(item, "n_sequence_fields"):
        return _composed(item, made_of)
    if kind is slice:
        return SliceValue(*(value_of(part, made_of) for part in (item.start, item.stop, item.step)))
    if isinstance(item, np.generic):
        return value_of(item.item(), made_of)
    return _named(item, made_of)


def _composed(item: Any, made_of: TorchMade) -> Value:
    if isinstance(item, dict):
        return {value_of(key, made_of): value_of(one, made_of) for key, one in item.items()}
    parts = [value_of(one, made_of) for one in item]
    return parts if isinstance(item, list) else tuple(parts)


def _named(item: Any, made_of: TorchMade) -> Value:
    if item is Ellipsis:
        return Name("special", "Ellipsis")
    if isinstance(item, torch.dtype):
        return Name("dtype", dtype_name(item))
    if isinstance(item, torch.layout):
        return Name("layout", str(item).removeprefix("torch."))
    if isinstance(item, torch.memory_format):
        return Name("memory_format", str(item).removeprefix("torch."))
    if isinstance(item, torch.device):
        if item.type != "cpu":
            raise NotEncodable(f"device {item.type}")
        return Name("device", "cpu")
    if isinstance(item, torch.nn.Module):
        made = made_of(item)
        if made is None:
            raise NotEncodable("a module whose construction was not seen")
        return made
    if callable(item):
        return Name("function", path_of(item))
    raise NotEncodable(f"a {type(item).__name__}")


@cache
def dtype_name(dtype: torch.dtype) -> str:
    """Return ONNX's name of an element type. Raises NotEncodable for one that ONNX lacks."""
    name = str(dtype).removeprefix("torch.")
    name = _OTHER_NAMES.get(name, name)
    if name not in DTYPES:
        raise NotEncodable(f"element type {name}")
    return name


def path_of(function: Any) -> str:
    """Return the import path of a public function or class. Raises NotEncodable for one that has none."""
    name, home = getattr(function, "__name__", ""), getattr(function, "__module__", None) or "builtins"
    for module in ("torch.nn.functional", "torch.nn", "torch", home):
        public = module.partition(".")[0] in _IMPORTABLE and not any(p.startswith("_") for p in module.split("."))
        if public and getattr(importlib.import_module(module), name, None) is function:
            return f"{module}.{name}"
    raise NotEncodable("a function without a public name")


def tensor_value(item: torch.Tensor) -> Value:
    """Return a tensor with its values, or a recipe for a large one. Raises NotEncodable unless it is dense."""
    if type(item) not in (torch.Tensor, torch.nn.Parameter):
        raise NotEncodable(f"a tensor of the class {type(item).__name__}")
    if torch._C._functorch.is_functorch_wrapped_tensor(item):
        raise NotEncodable("a tensor inside a transformation of torch.func")
    if item.layout != torch.strided or item.is_nested:
        raise NotEncodable("a sparse or nested tensor")
    if item.is_quantized:
        raise NotEncodable("a quantised tensor")
    if item.device.type != "cpu":
        raise NotEncodable(f"device {item.device.type}")
    dtype = dtype_name(item.dtype)
    if item.numel() > MOST_ELEMENTS:
        return _drawn(item, dtype)
    return Held(Tensor(dtype, _array(item, dtype)))


def _array(item: torch.Tensor, dtype: str) -> "np.ndarray[Any, np.dtype[Any]]":
    """Return a copy of the elements in numpy's storage."""
    dense = item.detach().resolve_conj().resolve_neg().contiguous()
    storage = DTYPES[dtype].storage
    if storage.name != dtype:
        dense = dense.view(_WORDS[storage.itemsize])
    return np.array(dense.numpy()).view(storage).reshape(tuple(item.shape))


def _drawn(item: torch.Tensor, dtype: str) -> Drawn:
    if DTYPES[dtype].kind != "float":
        raise NotEncodable(f"more than {MOST_ELEMENTS} elements that are no floats")
    if item.numel() > _MOST_DRAWN:
        raise NotEncodable(f"more than {_MOST_DRAWN} elements")
    array = _array(item, dtype)
    numbers = Tensor(dtype, array).numbers()
    finite = numbers[np.isfinite(numbers)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)
    recipe = Drawn(dtype, tuple(item.shape), low, high, zlib.crc32(array.tobytes()))
    if not recipe.drawable():
        raise NotEncodable("numbers that lie too far apart to be drawn")
    return recipe
