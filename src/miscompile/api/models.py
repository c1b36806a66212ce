"""Models and arrays as a caller has them, and as the package works with them."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, Union

import numpy as np
from google.protobuf.message import EncodeError  # type: ignore[import-untyped]

from miscompile.base.dtypes import DTYPES
from miscompile.base.errors import ModelError, UsageError
from miscompile.core.case import Feed, Port
from miscompile.core.tensor import Array, Tensor, tensor
from miscompile.graph.foreign import from_foreign, to_foreign
from miscompile.graph.model import Model
from miscompile.graph.read import load, mended, read
from miscompile.graph.specialise import bindings

if TYPE_CHECKING:
    import onnx
    from numpy.typing import ArrayLike

OnnxModel: TypeAlias = Union["onnx.ModelProto", bytes, str, "os.PathLike[str]"]
"""A model in memory, its serialised bytes, or the path of its file."""

Arrays: TypeAlias = Mapping[str, "ArrayLike"] | Sequence["ArrayLike"]
"""Inputs or outputs of a model: by name, or in the order of the model.

Element types that numpy lacks (bfloat16, the 8-bit floats, 4-bit integers) are arrays of `ml_dtypes`.
"""


def model_of(given: OnnxModel) -> Model:
    """Return the graph of a model. Raises ModelError, a UsageError, when it cannot be read."""
    if isinstance(given, str | os.PathLike):
        return load(Path(given))
    return read(mended(_bytes_of(given)))


def file_of(given: OnnxModel, folder: Path) -> Path:
    """Return the path of a model's file: its own, or a new one in `folder`. Raises ModelError when it is too large."""
    if isinstance(given, str | os.PathLike):
        return Path(given)
    path = folder / "model.onnx"
    path.write_bytes(_bytes_of(given))
    return path


def _bytes_of(given: "onnx.ModelProto | bytes") -> bytes:
    if isinstance(given, bytes):
        return given
    if not hasattr(given, "SerializeToString"):
        raise UsageError(f"{type(given).__name__} is no ONNX model; give a ModelProto, its bytes or the path of a file")
    try:
        return bytes(given.SerializeToString())
    except (EncodeError, ValueError) as error:
        raise ModelError(f"the model cannot be serialised; save it, and give the path of the file: {error}") from None


def tensors_of(given: Arrays, ports: Sequence[Port], what: str) -> list[Tensor | None]:
    """Return the tensors for `ports`, None for each that is not given. `what` is the name of the argument.

    Arrays stay as they are; other values, such as lists of numbers, get the type of the port. Raises UsageError for a
    name that the model does not have, and for more arrays than there are ports.
    """
    if isinstance(given, Mapping):
        names = [port.name for port in ports]
        unknown = [name for name in given if name not in names]
        if unknown:
            raise UsageError(f"{what}: the model has no '{unknown[0]}'; it has: {', '.join(names) or 'none'}")
        return [_tensor(given[port.name], port) if port.name in given else None for port in ports]
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise UsageError(f"{what}: give a dict of arrays by name, or a list of arrays in the order of the model")
    if len(given) > len(ports):
        raise UsageError(f"{what}: {len(given)} arrays for {len(ports)} of the model")
    found: list[Tensor | None] = [_tensor(value, port) for value, port in zip(given, ports, strict=False)]
    return found + [None] * (len(ports) - len(found))


def feed_of(given: Arrays, ports: Sequence[Port]) -> Feed:
    """Return the inputs. Raises UsageError when one is missing or has another type than the model declares."""
    found = tensors_of(given, ports, "inputs")
    feed = tuple(value for value in found if value is not None)
    if len(feed) < len(ports):
        missing = [port.name for port, value in zip(ports, found, strict=True) if value is None]
        raise UsageError(f"inputs: there is no array for '{missing[0]}'")
    _require_fit(ports, feed)
    return feed


def _require_fit(ports: Sequence[Port], feed: Feed) -> None:
    for port, value in zip(ports, feed, strict=True):
        if value.dtype != port.dtype:
            raise UsageError(f"inputs: '{port.name}' is an array of {value.dtype}, the model takes {port.dtype}")
    shapes: Mapping[str, tuple[int, ...]] = {port.name: value.shape for port, value in zip(ports, feed, strict=True)}
    try:
        bindings([(port.name, port.shape) for port in ports], shapes)
    except ModelError as error:
        raise UsageError(f"inputs: {error}") from None


def arrays_of(values: Mapping[str, Tensor]) -> dict[str, Array]:
    """Return tensors as arrays of numpy or `ml_dtypes`."""
    return {name: to_foreign(value) for name, value in values.items()}


def _tensor(value: "ArrayLike", port: Port) -> Tensor:
    if isinstance(value, np.ndarray | np.generic) or hasattr(value, "__array__"):
        array = np.asarray(value)
        words = DTYPES[port.dtype].storage
        foreign = words != np.dtype(object) and port.dtype != words.name
        if foreign and array.dtype == words:
            return tensor(array, port.dtype)  # the words of a type that numpy lacks
        return from_foreign(array)
    try:
        return tensor(np.asarray(value), port.dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise UsageError(f"'{port.name}' cannot be an array of {port.dtype}: {error}") from None
