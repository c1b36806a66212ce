"""Elements of a TensorProto as raw bytes or in typed fields.

Source: onnx.proto, `TensorProto`: 16- and 8-bit types, booleans and small floats lie as integers in `int32_data`,
16-bit floats as their bits; unsigned integers of 32 bits in `uint64_data`.
"""

from collections.abc import Mapping

import numpy as np
import onnx

_FIELDS: Mapping[int, tuple[str, str]] = {
    1: ("float_data", "<f4"), 11: ("double_data", "<f8"), 7: ("int64_data", "<i8"), 6: ("int32_data", "<i4"),
    12: ("uint64_data", "<u4"), 13: ("uint64_data", "<u8"), 5: ("int32_data", "<i2"), 4: ("int32_data", "<u2"),
    3: ("int32_data", "|i1"), 2: ("int32_data", "|u1"), 9: ("int32_data", "|u1"), 10: ("int32_data", "<u2"),
    16: ("int32_data", "<u2"), 17: ("int32_data", "|u1"), 18: ("int32_data", "|u1"), 19: ("int32_data", "|u1"),
    20: ("int32_data", "|u1"),
}  # fmt: skip
"""By element type: the typed field, and the type of its elements as raw bytes. Elements of less than a byte, strings
and complex numbers are left as they are."""


def can_be_restored(tensor: onnx.TensorProto) -> bool:
    """Tell whether `tensor` has a typed field, elements, all of them here, and no float32 that is not a number.

    The bits of such a float need not survive the way through a typed field.
    """
    if tensor.data_type not in _FIELDS or tensor.data_location == onnx.TensorProto.EXTERNAL:
        return False
    field, kind = _FIELDS[tensor.data_type]
    if not tensor.HasField("raw_data"):
        return len(getattr(tensor, field)) > 0
    elements = np.frombuffer(tensor.raw_data, kind)
    return elements.size > 0 and not (elements.dtype.kind == "f" and bool(np.isnan(elements).any()))


def restored(tensor: onnx.TensorProto) -> None:
    """Move the elements of `tensor` from raw bytes to the typed field, or back."""
    field, kind = _FIELDS[tensor.data_type]
    if tensor.HasField("raw_data"):
        getattr(tensor, field).extend(np.frombuffer(tensor.raw_data, kind).tolist())
        tensor.ClearField("raw_data")
    else:
        tensor.raw_data = np.array(list(getattr(tensor, field))).astype(kind).tobytes()
        tensor.ClearField(field)
