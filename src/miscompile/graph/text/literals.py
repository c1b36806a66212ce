"""Parsing of types, tensors and their elements."""

import base64
import binascii
import math

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.core.case import Dim
from miscompile.core.tensor import Array, Tensor
from miscompile.graph.model import (
    MapType,
    OptionalType,
    SequenceType,
    SparseTensor,
    SparseTensorType,
    TensorType,
    ValueType,
)
from miscompile.graph.text.elements import parse_elements, part_dtype
from miscompile.graph.text.lexer import Cursor, Token


def parse_type(cursor: Cursor) -> ValueType:
    """Parse a value type, such as `seq(float32[2,N,?])`. Raises ModelError."""
    if cursor.token.text in ("seq", "optional", "sparse", "map"):
        kind = cursor.take().text
        cursor.expect("(")
        made = _wrapped(cursor, kind)
        cursor.expect(")")
        return made
    return _tensor_type(cursor)


def parse_tensor(cursor: Cursor) -> Tensor:
    """Parse `float32[2] [1.0, 2.0]` and its other forms of elements. Raises ModelError."""
    dtype, shape = static_type(cursor)
    return parse_contents(cursor, dtype, shape)


def parse_sparse(cursor: Cursor) -> SparseTensor:
    """Parse `sparse [4,4] float32[1] [2.0] at int64[1] [5]`. Raises ModelError."""
    cursor.expect("sparse")
    shape = _sizes(cursor)
    values = parse_tensor(cursor)
    cursor.expect("at")
    return SparseTensor(values, parse_tensor(cursor), shape)


def static_type(cursor: Cursor) -> tuple[str, tuple[int, ...]]:
    """Parse the dtype and shape of a constant: all sizes must be numbers. Raises ModelError."""
    return _dtype(cursor), _sizes(cursor)


def parse_contents(cursor: Cursor, dtype: str, shape: tuple[int, ...]) -> Tensor:
    """Parse the elements of a tensor: a list, `fill` with one element, or `base64`. Raises ModelError."""
    start, count = cursor.token, math.prod(shape)
    if cursor.accept("base64"):
        flat = _from_base64(cursor, dtype)
    elif DTYPES[dtype].kind != "complex" and cursor.accept("fill"):
        flat = np.repeat(_convert(cursor, dtype, [cursor.take()]), count)
    else:
        flat = _listed(cursor, dtype)
    if flat.size != count:
        raise cursor.error(f"{dtype}{list(shape)} has {count} elements, but {flat.size} are given", start)
    return Tensor(dtype, flat.reshape(shape))


def _wrapped(cursor: Cursor, kind: str) -> ValueType:
    if kind == "map":
        key = _dtype(cursor)
        cursor.expect(",")
        return MapType(key, parse_type(cursor))
    if kind == "sparse":
        dense = _tensor_type(cursor)
        return SparseTensorType(dense.dtype, dense.shape)
    return SequenceType(parse_type(cursor)) if kind == "seq" else OptionalType(parse_type(cursor))


def _tensor_type(cursor: Cursor) -> TensorType:
    dtype = _dtype(cursor)
    cursor.expect("[")
    if cursor.accept("*"):
        cursor.expect("]")
        return TensorType(dtype, None)
    return TensorType(dtype, cursor.rest("]", _dim))


def _dim(cursor: Cursor) -> Dim:
    if cursor.accept("?"):
        return None
    if cursor.token.kind == "number":
        return cursor.integer("a size")
    return cursor.name("a size, a symbol or '?'")


def _dtype(cursor: Cursor) -> str:
    token = cursor.token
    name = cursor.expect_kind("word", "an element type")
    if name not in DTYPES:
        raise cursor.error(f"{name!r} is no element type", token)
    return name


def _sizes(cursor: Cursor) -> tuple[int, ...]:
    return cursor.items("[", "]", _size)


def _size(cursor: Cursor) -> int:
    token = cursor.token
    size = cursor.integer("a size")
    if size < 0:
        raise cursor.error("a size cannot be negative", token)
    return size


def _listed(cursor: Cursor, dtype: str) -> Array:
    cursor.expect("[")
    tokens: list[Token] = []
    pairs = DTYPES[dtype].kind == "complex"
    while not cursor.accept("]"):
        if tokens:
            cursor.expect(",")
        if pairs:
            cursor.expect("(")
            tokens.append(cursor.take())
            cursor.expect(",")
        tokens.append(cursor.take())
        if pairs:
            cursor.expect(")")
    return _convert(cursor, dtype, tokens)


def _convert(cursor: Cursor, dtype: str, tokens: list[Token]) -> Array:
    if dtype == "string":
        strings = np.empty(len(tokens), object)
        for index, token in enumerate(tokens):
            if token.kind != "string":
                raise cursor.error("expected a string in double quotes", token)
            strings[index] = token.text
        return strings
    for token in tokens:
        if token.kind != "number" and not (dtype == "bool" and token.text in ("true", "false")):
            raise cursor.error(f"expected an element of {dtype} but found {token.text!r}", token)
    part = part_dtype(dtype)
    try:
        return parse_elements(part, [token.text for token in tokens]).view(DTYPES[dtype].storage)
    except (ValueError, OverflowError):
        bad = next(token for token in tokens if not _fits(part, token.text))
    raise cursor.error(f"{bad.text!r} is no element of {part}", bad)


def _fits(dtype: str, text: str) -> bool:
    try:
        parse_elements(dtype, [text])
    except (ValueError, OverflowError):
        return False
    return True


def _from_base64(cursor: Cursor, dtype: str) -> Array:
    token = cursor.token
    text = cursor.expect_kind("string", "a string in double quotes")
    if dtype == "string":
        raise cursor.error("strings must be listed", token)
    try:
        return np.frombuffer(base64.b64decode(text, validate=True), DTYPES[dtype].storage)
    except (binascii.Error, ValueError):
        raise cursor.error(f"this is not base64 of elements of {dtype}", token) from None
