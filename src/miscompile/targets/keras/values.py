"""Conversion of operators' parameters to objects of Keras, and of tensors in both directions, on every back end.

Names in an instance are looked up attribute by attribute, only below `keras` and only in modules that contain layers
and operations. An archive of instances is untrusted data and must not be able to call anything else.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np

from miscompile.core.tensor import Array, Tensor, numpy_name
from miscompile.instances.values import Drawn, Held, Made, Name, SliceValue, Slot, Value, tensor_of
from miscompile.targets.keras.errors import OutsideKerasError
from miscompile.targets.keras.runner import tensors_in
from miscompile.targets.keras.source import THEIRS

_FOREIGN = {
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    **{ours: np.dtype(getattr(ml_dtypes, theirs)) for ours, theirs in THEIRS.items()},
}
_NAMES = {kind: name for name, kind in _FOREIGN.items()}

ROOMS = frozenset(
    {
        *("activations", "constraints", "dtype_policies", "initializers", "layers", "ops", "quantizers"),
        *("random", "regularizers", "DTypePolicy", "FloatDTypePolicy", "Sequential"),
    }
)
"""The modules that may follow `keras` in a path: those with layers, operations, and objects used as their
parameters."""

_CLOSED = frozenset({"TFSMLayer", "TorchModuleWrapper", "JaxLayer", "FlaxLayer", "deserialize"})
"""Objects that read files or execute their arguments."""


_NOT_DENSE = frozenset({"BCOO", "BCSR", "SparseTensor", "RaggedTensor", "IndexedSlices"})
"""Types of back ends that are tensors for Keras, but not for compilers."""


@cache
def found(path: str) -> Any:  # noqa: ANN401 - anything of Keras'
    """Return the object at an import path. Raises OutsideKerasError if the path cannot contain a layer or operation."""
    import keras

    root, *rest = path.split(".")
    if root != "keras" or not rest or rest[0] not in ROOMS or _CLOSED.intersection(rest):
        raise OutsideKerasError(f"'{path}' is no operator of keras")
    here: Any = keras
    for part in rest:
        if part.startswith("_") or not hasattr(here, part):
            raise OutsideKerasError(f"keras {keras.__version__} has no '{path}'")
        here = getattr(here, part)
        owner = inspect.getmodule(here)
        if owner is None or owner.__name__.partition(".")[0] != "keras":
            raise OutsideKerasError(f"'{path}' leaves keras")
    if isinstance(here, ModuleType) or not callable(here):
        raise OutsideKerasError(f"'{path}' cannot be called")
    return here


def dtype_name(dtype: str) -> str:
    """Return Keras' name of the element type with ONNX's name `dtype`."""
    return THEIRS.get(dtype, dtype)


def object_of(value: Value, tensors: Sequence[Any] = ()) -> Any:  # noqa: ANN401 - anything of Keras'
    """Return the object that a parameter represents, with `tensors` in place of slots.

    Tensors that are constants become numpy arrays. Raises OutsideKerasError for names that Keras lacks.
    """
    match value:
        case tuple():
            return tuple(object_of(item, tensors) for item in value)
        case list():
            return [object_of(item, tensors) for item in value]
        case dict():
            return {object_of(key): object_of(item, tensors) for key, item in value.items()}
        case SliceValue(start, stop, step):
            return slice(object_of(start, tensors), object_of(stop, tensors), object_of(step, tensors))
        case Made(api, args, kwargs):
            given = {name: object_of(item, tensors) for name, item in kwargs.items()}
            return found(api)(*(object_of(item, tensors) for item in args), **given)
        case Held() | Drawn():
            return native(tensor_of(value))
        case Slot(index):
            return tensors[index]
        case Name():
            return _named(value)
        case _:
            return value


def _named(value: Name) -> Any:  # noqa: ANN401 - anything of Keras'
    match value.kind:
        case "dtype":
            return dtype_name(value.name)
        case "function":
            return found(value.name)
        case "special":
            return {"Ellipsis": ..., "NotImplemented": NotImplemented}[value.name]
        case _:
            raise OutsideKerasError(f"keras has no {value.kind} '{value.name}'")


def native(value: Tensor) -> Array:
    """Return the elements as an array that every back end accepts."""
    return value.array.view(_FOREIGN[value.dtype]) if value.dtype in _FOREIGN else value.array


def wrapped(array: Array) -> Tensor:
    """Return an array as a tensor; elements of types that numpy lacks become words."""
    name = _NAMES.get(array.dtype)
    if name is None:
        return Tensor(numpy_name(array.dtype), array)
    return Tensor(name, np.ascontiguousarray(array).view(f"uint{8 * array.itemsize}").reshape(array.shape))


def flat(outputs: Any) -> Iterator[Any]:  # noqa: ANN401 - whatever an operator returned
    """Yield the tensors in an operator's result, in order. Raises NotImplementedError for other objects in it."""
    import keras

    for value in tensors_in(outputs):
        if getattr(value, "sparse", False) or type(value).__name__ in _NOT_DENSE:
            raise NotImplementedError(f"a sparse result of type {type(value).__name__} is no tensor")
        if not isinstance(value, np.ndarray | np.generic | keras.KerasTensor) and not keras.ops.is_tensor(value):
            raise NotImplementedError(f"a result of type {type(value).__name__} is no tensor")
        yield value


def dense(model: Callable[..., Any]) -> Callable[..., list[Any]]:
    """Return `model` with its results as a flat list of tensors. The function that is returned raises as `flat`."""
    return lambda *values, **options: list(flat(model(*values, **options)))


def tensors_of(outputs: Any) -> tuple[Tensor, ...]:  # noqa: ANN401 - whatever an operator returned
    """Return the tensors in an operator's result. Raises NotImplementedError as `flat`."""
    import keras

    return tuple([wrapped(np.array(keras.ops.convert_to_numpy(value))) for value in flat(outputs)])
