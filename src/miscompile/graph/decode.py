"""Conversion of a TensorProto to a tensor, for every element type and for raw, typed and external data."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from miscompile.base.dtypes import BY_CODE, DTYPES
from miscompile.base.errors import ModelError
from miscompile.core.small import is_packed, packed_size, unpack
from miscompile.core.tensor import Array, Tensor

_TYPED_FIELDS = {
    "float32": "float_data", "complex64": "float_data", "float64": "double_data", "complex128": "double_data",
    "int64": "int64_data", "uint64": "uint64_data", "uint32": "uint64_data",
}  # fmt: skip
"""The field of TensorProto that holds elements outside `raw_data`; all other types use `int32_data`."""

_EXTERNAL = 1


def dtype_name(code: int) -> str:
    """Return the dtype with number `code` of TensorProto.DataType. Raises ModelError for an unknown number."""
    if code not in BY_CODE:
        raise ModelError(f"element type {code} is not one that this version knows")
    return BY_CODE[code].name


def decode_tensor(proto: Any, folder: Path | None = None) -> Tensor:  # noqa: ANN401 - a protobuf message
    """Return the tensor that TensorProto `proto` holds; arrays over raw data are read-only.

    `folder` is where external data lies, None when there is none to look in. Raises ModelError when the data do
    not fit the declared type and shape. Source: onnx.proto, message TensorProto.
    """
    try:
        return _decode(proto, folder)
    except ModelError as error:
        raise ModelError(f"tensor {proto.name!r}: {error}" if proto.name else f"a tensor: {error}") from None


def _decode(proto: Any, folder: Path | None) -> Tensor:  # noqa: ANN401
    dtype, shape = dtype_name(proto.data_type), tuple(proto.dims)
    if any(size < 0 for size in shape):
        raise ModelError(f"shape {list(shape)} has a negative size")
    if proto.HasField("segment"):
        raise ModelError("data in segments are not supported; merge the segments first")
    count = math.prod(shape)
    if dtype == "string":
        flat: Array = _strings(proto, count)
    elif proto.data_location == _EXTERNAL:
        flat = _from_raw(_external(proto, folder), dtype, count)
    elif proto.HasField("raw_data"):
        flat = _from_raw(proto.raw_data, dtype, count)
    else:
        flat = _from_typed(proto, dtype, count)
    return Tensor(dtype, flat.reshape(shape))


def _strings(proto: Any, count: int) -> Array:  # noqa: ANN401
    _expect(len(proto.string_data), count)
    array = np.empty(count, object)
    array[:] = [item.decode("utf-8", "surrogateescape") for item in proto.string_data]
    return array


def _from_raw(data: bytes, dtype: str, count: int) -> Array:
    info = DTYPES[dtype]
    size = packed_size(count, info.bits)
    if len(data) != size:
        raise ModelError(f"{count} elements of {dtype} need {size} bytes of data, not {len(data)}")
    return unpack(data, info.bits, count) if is_packed(dtype) else np.frombuffer(data, info.storage)


def _from_typed(proto: Any, dtype: str, count: int) -> Array:  # noqa: ANN401
    info = DTYPES[dtype]
    if dtype in _TYPED_FIELDS:
        words = getattr(proto, _TYPED_FIELDS[dtype])
        parts = 2 if info.kind == "complex" else 1
        _expect(len(words), count * parts)
        real = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
        return np.array(words, real).view(info.storage)
    field = np.array(proto.int32_data, np.int32)
    if is_packed(dtype) and info.bits != 6:  # 6-bit elements take one entry each, narrower ones share a byte
        _expect(field.size, packed_size(count, info.bits))
        return unpack(field.astype(np.uint8).tobytes(), info.bits, count)
    _expect(field.size, count)
    if info.kind == "float":  # bit patterns, not numbers
        return field.astype(f"uint{info.storage.itemsize * 8}").view(info.storage)
    return field.astype(info.storage)


def _expect(found: int, wanted: int) -> None:
    if found != wanted:
        raise ModelError(f"its shape asks for {wanted} entries of data, but there are {found}")


def _external(proto: Any, folder: Path | None) -> bytes:  # noqa: ANN401
    entries = {entry.key: entry.value for entry in proto.external_data}
    location = entries.get("location", "")
    if folder is None:
        raise ModelError(f"its data lie in the file {location!r}; load the model from its path")
    path = (folder / location).resolve()
    if not location or not path.is_relative_to(folder.resolve()):
        raise ModelError(f"its data file {location!r} is not inside the model's folder")
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", -1))
        with path.open("rb") as file:
            file.seek(offset)
            data: bytes = file.read(length if length >= 0 else -1)
    except (OSError, ValueError) as error:
        raise ModelError(f"its data file {location!r} cannot be read: {error}") from None
    return data
