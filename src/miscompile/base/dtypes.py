"""Element types by their ONNX names, with the facts that samplers, wire and oracles need.

A dtype is a plain string (`"float32"`); strings are fast, hash well and need no encoding in JSON. Types that numpy
lacks are *stored* as unsigned integers of the same width (`bfloat16` as `uint16`), so that a worker needs nothing but
numpy. Numbers are those of `onnx.TensorProto.DataType`.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

DtypeKind = Literal["float", "int", "uint", "bool", "complex", "string"]


@dataclass(frozen=True, slots=True)
class DType:
    """Facts about one element type.

    `bits` is the width of an element; `digits` the bits of a float's significand (integers up to 2**digits are
    exact), or the value bits of an integer; `storage` the numpy type that holds the elements.
    """

    name: str
    code: int
    kind: DtypeKind
    bits: int
    digits: int
    storage: np.dtype[Any]
    low: float
    high: float

    @property
    def eps(self) -> float:
        """Distance from 1.0 to the next float of this type; 0.0 for other kinds."""
        return 2.0 ** (1 - self.digits) if self.kind == "float" else 0.0


def _dtype(name: str, code: int, kind: DtypeKind, bits: int, digits: int, storage: str, high: float) -> DType:
    low = -high - 1 if kind == "int" else -high if kind == "float" else 0
    return DType(name, code, kind, bits, digits, np.dtype(storage), low, high)


_ALL = (
    _dtype("float32", 1, "float", 32, 24, "float32", float(np.finfo(np.float32).max)),
    _dtype("uint8", 2, "uint", 8, 8, "uint8", 2**8 - 1),
    _dtype("int8", 3, "int", 8, 7, "int8", 2**7 - 1),
    _dtype("uint16", 4, "uint", 16, 16, "uint16", 2**16 - 1),
    _dtype("int16", 5, "int", 16, 15, "int16", 2**15 - 1),
    _dtype("int32", 6, "int", 32, 31, "int32", 2**31 - 1),
    _dtype("int64", 7, "int", 64, 63, "int64", 2**63 - 1),
    _dtype("string", 8, "string", 0, 0, "object", 0),
    _dtype("bool", 9, "bool", 8, 1, "bool", 1),
    _dtype("float16", 10, "float", 16, 11, "float16", 65504.0),
    _dtype("float64", 11, "float", 64, 53, "float64", float(np.finfo(np.float64).max)),
    _dtype("uint32", 12, "uint", 32, 32, "uint32", 2**32 - 1),
    _dtype("uint64", 13, "uint", 64, 64, "uint64", 2**64 - 1),
    _dtype("complex64", 14, "complex", 64, 24, "complex64", float(np.finfo(np.float32).max)),
    _dtype("complex128", 15, "complex", 128, 53, "complex128", float(np.finfo(np.float64).max)),
    _dtype("bfloat16", 16, "float", 16, 8, "uint16", 3.3895313892515355e38),
    _dtype("float8e4m3fn", 17, "float", 8, 4, "uint8", 448.0),
    _dtype("float8e4m3fnuz", 18, "float", 8, 4, "uint8", 240.0),
    _dtype("float8e5m2", 19, "float", 8, 3, "uint8", 57344.0),
    _dtype("float8e5m2fnuz", 20, "float", 8, 3, "uint8", 57344.0),
    _dtype("uint4", 21, "uint", 4, 4, "uint8", 15),
    _dtype("int4", 22, "int", 4, 3, "uint8", 7),
    _dtype("float4e2m1", 23, "float", 4, 2, "uint8", 6.0),
    _dtype("float8e8m0", 24, "float", 8, 1, "uint8", 2.0**127),
    _dtype("uint2", 25, "uint", 2, 2, "uint8", 3),
    _dtype("int2", 26, "int", 2, 1, "uint8", 1),
    _dtype("float6e2m3", 27, "float", 6, 4, "uint8", 7.5),
    _dtype("float6e3m2", 28, "float", 6, 3, "uint8", 28.0),
)

DTYPES: dict[str, DType] = {d.name: d for d in _ALL}
BY_CODE: dict[int, DType] = {d.code: d for d in _ALL}

FLOATS = ("float32", "float16", "float64", "bfloat16")
SIGNED = ("int64", "int32", "int16", "int8")
UNSIGNED = ("uint64", "uint32", "uint16", "uint8")
INTEGERS = SIGNED + UNSIGNED
NUMBERS = FLOATS + INTEGERS
SMALL_FLOATS = ("float8e4m3fn", "float8e5m2", "float8e4m3fnuz", "float8e5m2fnuz", "float4e2m1")
SMALL_INTEGERS = ("int4", "uint4", "int2", "uint2")
SMALL = SMALL_FLOATS + SMALL_INTEGERS
"""Storage types: operators convert, quantise and move their elements, and no operator computes with them.

Three types of ONNX are left out: float8e8m0, because it holds only powers of two, no zero and no sign, so that no range
of numbers can be drawn from it; float6e2m3 and float6e3m2, because no supported compiler takes them.
"""

SMALL_SINCE = {
    **dict.fromkeys(SMALL_FLOATS, 19), "float4e2m1": 23, "int4": 21, "uint4": 21, "int2": 25, "uint2": 25,
}  # fmt: skip
"""First opset in which Cast, CastLike, QuantizeLinear and DequantizeLinear take each of them."""

PLAIN = (*NUMBERS, "bool", *SMALL)
"""The element types that the generator uses: all of ONNX but strings, complex numbers and the three named above."""


def is_float(dtype: str) -> bool:
    """Tell whether `dtype` is a binary floating-point type."""
    return DTYPES[dtype].kind == "float"


def is_integer(dtype: str) -> bool:
    """Tell whether `dtype` is a signed or unsigned integer type (bool is not)."""
    return DTYPES[dtype].kind in ("int", "uint")
