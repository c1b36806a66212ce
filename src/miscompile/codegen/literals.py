"""Literals in Python source: numbers, text, sequences, bytes and arrays. An array needs numpy, bytes need `base64`."""

import base64
import textwrap

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.codegen.layout import Expression, Group, array, call, lay_out
from miscompile.core.tensor import Array, Tensor, text_of

_LITERAL = 64
"""Tensors up to this many elements are written out as numbers."""
_PATTERN = 4
"""Tensors with more elements are written as zeros, ones, full or arange where possible."""
_BYTES_WIDTH = 100


def native(dtype: str) -> bool:
    """Tell whether numpy itself has elements of this type."""
    return dtype == "string" or DTYPES[dtype].storage.name == dtype


def literal(value: object) -> str:
    """Return None, a number, text, or a tuple, list or dict of them as source on one line.

    Raises TypeError for anything else.
    """
    match value:
        case None:
            return "None"
        case str():
            return quoted(value)
        case tuple():
            return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
        case list():
            return f"[{', '.join(map(literal, value))}]"
        case dict():
            return f"{{{', '.join(f'{literal(key)}: {literal(item)}' for key, item in value.items())}}}"
        case _:
            return number_code(value)


def quoted(text: str) -> str:
    """Return a string literal in double quotes where that needs no more escapes."""
    literal = repr(text)
    return literal if '"' in literal else f'"{literal[1:-1]}"'


def number_code(value: object, kind: type[np.generic] | None = None) -> str:
    """Return the shortest decimal that is the same number in `kind`, an element type of numpy.

    None stands for Python's own types; then numbers without a literal are calls of `float`, else names in `np`. Raises
    TypeError for any other value.
    """
    if kind is None and isinstance(value, int):  # of any size
        return repr(value)
    scalar = np.asarray(value, kind)
    match scalar.dtype.kind:
        case "b" | "i" | "u":
            return repr(scalar.item())
        case "f" if not np.isfinite(scalar):
            name = str(scalar.item())
            return f'float("{name}")' if kind is None else f"{name[:-3]}np.{name[-3:]}"
        case "f":
            short = str(scalar[()])
            exact = np.asarray(float(short), kind).tobytes() == scalar.tobytes()
            return repr(float(short) if exact else float(scalar)).replace("e+", "e")
        case "c":
            part = None if kind is None else scalar.real.dtype.type
            return f"complex({number_code(scalar.real, part)}, {number_code(scalar.imag, part)})"
        case _:
            raise TypeError(f"{value!r} is no number")


def bytes_code(data: bytes) -> Expression:
    """Return an expression for bytes, which needs `base64`."""
    pieces = textwrap.wrap(base64.b64encode(data).decode(), _BYTES_WIDTH) or [""]
    return Group("base64.b64decode(", tuple(f'"{piece}"' for piece in pieces), ")", glued=True)


def array_code(value: Tensor) -> Expression:
    """Return an expression whose value is the storage array of `value`, bit for bit.

    Small tensors are written as decimal numbers, others as base64 of the raw little-endian bytes.
    """
    elements = value.array
    if value.dtype == "string":
        texts = array([quoted(text_of(item)) for item in elements.ravel().tolist()])
        flat = Group("np.array(", (texts, "dtype=object"), ")")
        return flat if elements.ndim == 1 else Group("np.array(", flat.items, f").reshape({elements.shape})")
    for expression in _spellings(value):
        if _evaluates_to(expression, value):
            return expression
    end = f").reshape({elements.shape})"
    return Group("np.frombuffer(", (bytes_code(elements.tobytes()), f"dtype=np.{elements.dtype.name}"), end)


def _spellings(value: Tensor) -> list[Expression]:
    """Return spellings, the shortest first; the caller takes the first that gives the same bits."""
    elements = value.array
    if elements.dtype.kind not in "fiubc":
        return []
    kind = "np.bool_" if elements.dtype == bool else f"np.{elements.dtype.name}"
    shape, found = elements.shape, list[Expression]()
    if elements.size > _PATTERN or elements.size == 0:
        found += [f"np.zeros({shape}, {kind})", f"np.ones({shape}, {kind})"]
    if elements.size > _PATTERN:
        found.append(f"np.full({shape}, {number_code(elements.flat[0], elements.dtype.type)}, {kind})")
        end = "" if elements.ndim == 1 else f".reshape({shape})"
        if elements.dtype != bool:
            found.append(f"np.arange({elements.size}, dtype={kind}){end}")
    if elements.size <= _LITERAL:
        found.append(call("np.array", _nested(elements), kind))
    return found


def _nested(elements: Array) -> Expression:
    if elements.ndim == 0:
        return number_code(elements[()], elements.dtype.type)
    return array([_nested(np.asarray(item)) for item in elements])


def _evaluates_to(expression: Expression, value: Tensor) -> bool:
    """Tell whether the expression, which this module made from numbers, gives exactly the bits of `value`."""
    found = eval(lay_out(expression), {"np": np})
    return bool(found.dtype == value.array.dtype and Tensor(value.dtype, found).same(value))
