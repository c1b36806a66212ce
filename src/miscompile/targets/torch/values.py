"""Conversion of operators' parameters to objects of torch, and of tensors in both directions.

Names in an instance are looked up attribute by attribute, only below `torch` and only in modules that contain
operators. An archive of instances is untrusted data and must not be able to call anything else.
"""

import contextlib
import importlib
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np
import torch

from miscompile.core.tensor import Tensor, numpy_name
from miscompile.instances.values import Drawn, Held, Made, Name, SliceValue, Slot, Value, tensor_of
from miscompile.targets.torch.errors import OutsideTorchError
from miscompile.targets.torch.names import FOREIGN
from miscompile.targets.torch.runner import words_of

_PLAIN = (
    *("float32", "float64", "float16", "complex64", "complex128", "bool"),
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
)

ELEMENTS: dict[str, torch.dtype] = {
    name: getattr(torch, theirs)
    for name, theirs in (*((name, name) for name in _PLAIN), *FOREIGN.items())
    if hasattr(torch, theirs)
}
"""Torch's element types by ONNX's names; an old release lacks some."""

_NAMES = {theirs: name for name, theirs in ELEMENTS.items()}

_ROOMS = frozenset(
    {
        *("Tensor", "ao", "fft", "functional", "linalg", "masked", "nested", "nn", "ops", "quantization", "signal"),
        *("sparse", "special", "_C", "_VF", "_refs", "distributions"),
    }
)
"""The modules that may follow `torch` in a longer path: those that contain operators and modules."""

_NATIVE = frozenset({"_nn", "_special", "_linalg", "_fft", "_sparse", "_nested", "_VariableFunctions"})
"""The modules that may follow `torch._C`: those with operators of the extension, not its internals."""

_CLOSED = frozenset(
    {
        *("load", "save", "compile", "import_ir_module", "from_file", "load_library", "ScriptFunction", "classes"),
    }
)
"""Functions of torch that read files or execute their arguments."""


def found(path: str) -> Any:  # noqa: ANN401 - anything of torch's
    """Return the object at an import path. Raises OutsideTorchError if it is not in a part of torch with operators."""
    root, *rest = path.split(".")
    room = rest[0] if len(rest) > 1 else ""
    closed = room not in _ROOMS if room else rest == [] or rest[0].startswith(("set_", "use_", "_set_"))
    if root != "torch" or closed or (room == "_C" and rest[1] not in _NATIVE):
        raise OutsideTorchError(f"'{path}' is no operator of torch")
    return _walked(path)


@cache
def _walked(path: str) -> Any:  # noqa: ANN401 - anything of torch's
    here: Any = torch
    parts = path.split(".")
    for place, part in enumerate(parts[1:], 2):
        hidden = part.startswith("__") and not (place == len(parts) and here is torch.Tensor)
        if hidden or part in _CLOSED:
            raise OutsideTorchError(f"'{path}' is no operator of torch")
        here = _inside(here, part, ".".join(parts[:place]), path)
        if isinstance(here, ModuleType) and here.__name__.partition(".")[0] != "torch":
            raise OutsideTorchError(f"'{path}' leaves torch by way of {here.__name__}")
    if isinstance(here, ModuleType) or not callable(here):
        raise OutsideTorchError(f"'{path}' cannot be called")
    owner = getattr(here, "__module__", None)
    if isinstance(owner, str) and owner.partition(".")[0] not in ("torch", "_VariableFunctions"):
        raise OutsideTorchError(f"'{path}' leaves torch by way of {owner}")
    return here


def _inside(owner: Any, part: str, prefix: str, path: str) -> Any:  # noqa: ANN401 - anything of torch's
    """Return attribute `part` of `owner`, after importing the module `prefix` if it is missing."""
    if not hasattr(owner, part) and isinstance(owner, ModuleType):
        with contextlib.suppress(ImportError):  # the error below names the missing object
            importlib.import_module(prefix)
    try:
        return getattr(owner, part)
    except AttributeError:
        raise OutsideTorchError(f"torch {torch.__version__} has no '{path}'") from None


def object_of(value: Value) -> Any:  # noqa: ANN401 - anything of torch's
    """Return the object that a parameter represents; tensors as new tensors.

    Raises OutsideTorchError for names that torch lacks, NotImplementedError for devices other than the CPU, TypeError
    for a Slot, whose tensor is not known here.
    """
    match value:
        case tuple():
            return tuple(object_of(item) for item in value)
        case list():
            return [object_of(item) for item in value]
        case dict():
            return {object_of(key): object_of(item) for key, item in value.items()}
        case SliceValue(start, stop, step):
            return slice(object_of(start), object_of(stop), object_of(step))
        case Made(api, args, kwargs):
            return found(api)(*map(object_of, args), **{name: object_of(item) for name, item in kwargs.items()})
        case Held() | Drawn():
            return to_torch(tensor_of(value))
        case Name():
            return named(value)
        case Slot():
            raise TypeError(f"input {value.index} stands where only constants can")
        case _:
            return value


def named(value: Name) -> Any:  # noqa: ANN401 - anything of torch's
    """Return the object of a name. Raises OutsideTorchError for names that torch lacks."""
    match value.kind:
        case "dtype":
            dtype = ELEMENTS.get(value.name, getattr(torch, value.name, None))
            return _checked(dtype, torch.dtype, value)
        case "layout":
            return _checked(getattr(torch, value.name, None), torch.layout, value)
        case "memory_format":
            return _checked(getattr(torch, value.name, None), torch.memory_format, value)
        case "device":
            if value.name.partition(":")[0] != "cpu":
                raise NotImplementedError(f"device {value.name} is not used")
            return torch.device(value.name)
        case "function":
            return found(value.name)
        case "special":
            return {"Ellipsis": ..., "NotImplemented": NotImplemented}[value.name]


def _checked(thing: Any, kind: type, value: Name) -> Any:  # noqa: ANN401 - anything of torch's
    if not isinstance(thing, kind):
        raise OutsideTorchError(f"torch {torch.__version__} has no {value.kind} '{value.name}'")
    return thing


def to_torch(value: Tensor) -> torch.Tensor:
    """Return a copy of `value` on the CPU. Raises NotImplementedError for element types that torch lacks."""
    if value.dtype not in ELEMENTS:
        raise NotImplementedError(f"an element of {value.dtype} is no tensor's of torch")
    array = np.array(value.array, order="C")
    if value.dtype not in FOREIGN:
        return torch.from_numpy(array)
    words = np.int16 if array.itemsize == 2 else np.uint8
    return torch.from_numpy(array.view(words)).view(ELEMENTS[value.dtype])


def from_torch(value: torch.Tensor) -> Tensor:
    """Return `value` with numpy's storage. Raises NotImplementedError unless it is a dense tensor on the CPU."""
    if value.layout is not torch.strided or value.is_quantized or value.is_nested or value.device.type != "cpu":
        kind = "quantised" if value.is_quantized else "nested" if value.is_nested else f"{value.device} {value.layout}"
        raise NotImplementedError(f"a {kind} tensor is no tensor that all compilers know")
    name = _NAMES.get(value.dtype)
    if name is None:
        raise NotImplementedError(f"{value.dtype} has no element type of ONNX's")
    array, _ = words_of(value)
    return Tensor(name if name in FOREIGN else numpy_name(array.dtype), array)
