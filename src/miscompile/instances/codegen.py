"""Tensors and parameters as Python source: arrays that need numpy alone, values in a library's API."""

import base64
import keyword
import math
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.core.tensor import Array, Tensor
from miscompile.instances.layout import Expression, Group, Keyed, array, call, lay_out, quoted
from miscompile.instances.values import Drawn, Held, Made, Name, SliceValue, Slot, Value

_LITERAL = 64
"""Tensors up to this many elements are written out as numbers."""
_PATTERN = 4
"""Longer ones are written as zeros, ones, full or arange where possible."""
_BYTES_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Dialect:
    """The spelling of library-specific values in source.

    `tensor` and `drawn` return expressions for tensors, `name` for named objects, `slot` for an input of the program.
    """

    tensor: Callable[[Tensor], Expression]
    drawn: Callable[[Drawn], Expression]
    name: Callable[[Name], str]
    slot: Callable[[Slot], str]


def spell(value: Value, dialect: Dialect) -> Expression:
    """Return an expression for a parameter."""
    match value:
        case tuple():
            inner = tuple(spell(item, dialect) for item in value)
            return Group("(", inner, ",)" if len(inner) == 1 else ")")
        case list():
            return array([spell(item, dialect) for item in value])
        case dict():
            entries = [(lay_out(spell(key, dialect)), spell(item, dialect)) for key, item in value.items()]
            return Group("{", tuple(Keyed(f"{key}: ", item) for key, item in entries), "}")
        case SliceValue(start, stop, step):
            return call("slice", *(spell(part, dialect) for part in (start, stop, step)))
        case Made(api, args, kwargs):
            return spell_call(api, args, kwargs, dialect)
        case Held(tensor):
            return dialect.tensor(tensor)
        case Drawn():
            return dialect.drawn(value)
        case Name(kind, name):
            return name if kind == "special" else dialect.name(value)
        case Slot():
            return dialect.slot(value)
        case str():
            return quoted(value)
        case float() | complex():
            return _literal(value)
        case _:
            return repr(value)


def spell_call(function: str, args: Sequence[Value], kwargs: Mapping[str, Value], dialect: Dialect) -> Group:
    """Return a call of `function` with parameters; a keyword that is no identifier is passed in a dict."""
    given = [spell(value, dialect) for value in args]
    plain = {name: spell(value, dialect) for name, value in kwargs.items() if _identifier(name)}
    odd: dict[Value, Value] = {name: value for name, value in kwargs.items() if not _identifier(name)}
    words: list[Expression] = [Keyed(f"{name}=", value) for name, value in plain.items()]
    return call(function, *given, *words, *([Keyed("**", spell(odd, dialect))] if odd else []))


def _identifier(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


def spell_drawn(value: Drawn) -> Expression:
    """Return an expression that draws the array of a recipe with the same numbers.

    Raises ValueError for element types that numpy lacks: the caller must spell their elements.
    """
    if not native(value.dtype):
        raise ValueError(f"numpy draws no {value.dtype}")
    kind, shape = DTYPES[value.dtype].kind, value.shape
    rng = f"np.random.default_rng({value.seed})"
    if kind == "bool":
        return f"{rng}.integers(0, 2, {shape}).astype(bool)"
    end = f".astype(np.{value.dtype})"
    if kind in ("int", "uint"):
        low = int(value.low)
        return f"{rng}.integers({low}, {max(int(value.high), low + 1)}, {shape}){end}"
    drawn = f"rng.uniform({_literal(value.low)}, {_literal(value.high)}, {shape})"
    if kind == "complex":
        return f"(lambda rng: {drawn} + 1j * {drawn})({rng}){end}"
    return f"np.asarray({drawn.replace('rng', rng, 1)}){end}"


def native(dtype: str) -> bool:
    """Tell whether numpy itself has elements of this type."""
    return dtype == "string" or DTYPES[dtype].storage.name == dtype


def array_code(value: Tensor) -> Expression:
    """Return an expression whose value is the storage array of `value`, bit for bit.

    Small tensors are readable numbers, others base64 of the raw little-endian bytes.
    """
    elements = value.array
    if value.dtype == "string":
        texts = array([quoted(_text(item)) for item in elements.ravel().tolist()])
        flat = Group("np.array(", (texts, "dtype=object"), ")")
        return flat if elements.ndim == 1 else Group("np.array(", flat.items, f").reshape({elements.shape})")
    for expression in _spellings(value):
        if _evaluates_to(expression, value):
            return expression
    end = f").reshape({elements.shape})"
    return Group("np.frombuffer(", (bytes_code(elements.tobytes()), f"dtype=np.{elements.dtype.name}"), end)


def bytes_code(data: bytes) -> Expression:
    """Return an expression for bytes, which needs `base64`."""
    pieces = textwrap.wrap(base64.b64encode(data).decode(), _BYTES_WIDTH) or [""]
    return Group("base64.b64decode(", tuple(f'"{piece}"' for piece in pieces), ")", glued=True)


def number_code(value: object, kind: type[np.generic]) -> str:
    """Return the shortest decimal that is the same number in `kind`."""
    scalar = np.asarray(value, kind)
    if scalar.dtype.kind == "c":
        real, imaginary = (number_code(part, scalar.real.dtype.type) for part in (scalar.real, scalar.imag))
        return f"complex({real}, {imaginary})"
    if scalar.dtype.kind != "f":
        return repr(scalar.item())
    if not np.isfinite(scalar):
        return "np.nan" if np.isnan(scalar) else "np.inf" if scalar > 0 else "-np.inf"
    short = str(scalar[()])
    exact = np.asarray(float(short), kind).tobytes() == scalar.tobytes()
    return repr(float(short) if exact else float(scalar)).replace("e+", "e")


def _text(item: object) -> str:
    return item.decode("utf-8", "surrogateescape") if isinstance(item, bytes) else str(item)


def _literal(value: float | complex) -> str:
    if isinstance(value, complex):
        return f"complex({_literal(value.real)}, {_literal(value.imag)})"
    return repr(value) if math.isfinite(value) else f'float("{value}")'


def _spellings(value: Tensor) -> list[Expression]:
    """Spellings from the shortest; the caller uses the first that gives the same bits."""
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
    """Only source made above from numbers is evaluated here, to be sure of every bit."""
    found = eval(lay_out(expression), {"np": np})
    return bool(found.dtype == value.array.dtype and Tensor(value.dtype, found).same(value))
