"""Conversions of floats to integers that cannot represent them: undefined in C++, and in ONNX.

The operators that convert are not listed but detected: a result that has the shape of an operand, and equals the
operand without its fraction wherever that is in range, is its conversion, element by element.
"""

from collections.abc import Sequence

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.core.case import Feed
from miscompile.core.tensor import Array, Tensor
from miscompile.instances.instance import Instance
from miscompile.instances.values import Name, leaves
from miscompile.oracles.unspecified.operands import tensors_of

_AS_BITS = ("view",)
"""Operators that take an element type and do not convert to it."""


def beyond_integers(instance: Instance, feed: Feed, results: Sequence[Tensor | None]) -> list[Array | None]:
    """Return for each result which of its elements may depend on such a conversion; None where none does.

    A result is unspecified as a whole where it may depend on a conversion that is not element by element (a sum in
    another type, a write into a part of a tensor), and where an integer result depends on NaN.
    """
    given = [one for one in tensors_of(instance, feed) if DTYPES[one.dtype].kind in ("float", "complex")]
    return [None if value is None else _open(instance, value, given) for value in results]


def _open(instance: Instance, result: Tensor, given: Sequence[Tensor]) -> Array | None:
    kind = DTYPES[result.dtype]
    found: Array | None = None
    for numbers in map(_reals, given) if kind.kind in ("int", "uint") else ():
        with np.errstate(invalid="ignore"):
            cut = np.trunc(numbers)
            beyond = ~((cut >= kind.low) & (cut < kind.high + 1))  # NaN is neither
        if not beyond.any():
            continue
        if _converted(cut, beyond, result):
            open_here = np.broadcast_to(beyond, result.shape)
        elif np.isnan(numbers).any() or _converts(instance, result.dtype):
            open_here = np.ones(result.shape, bool)
        else:
            continue
        found = open_here if found is None else found | open_here
    return found


def _reals(value: Tensor) -> Array:
    return np.asarray(np.real(value.numbers()), np.float64)


def _converted(cut: Array, beyond: Array, result: Tensor) -> bool:
    """Tell whether the result is the operand without its fractions, wherever that is in range."""
    try:
        wanted, loose = np.broadcast_to(cut, result.shape), np.broadcast_to(beyond, result.shape)
    except ValueError:
        return False
    return bool((loose | (wanted == np.asarray(result.numbers(), np.float64))).all())


def _converts(instance: Instance, dtype: str) -> bool:
    """Tell whether an operator may convert to a type in another way: it takes the type, or writes into a tensor.

    In ONNX none does: Cast and CastLike convert element by element, and quantisation saturates.
    """
    name = instance.operator
    if instance.library == "onnx" or name in _AS_BITS:
        return False
    words = (*instance.args, *instance.kwargs.values(), *instance.options.values())
    told = {one.name if isinstance(one, Name) else one for word in words for one in leaves(word) if _is_text(one)}
    return dtype in told or (name.endswith(("_update", "_")) and not name.startswith("__"))


def _is_text(value: object) -> bool:
    return isinstance(value, str) or (isinstance(value, Name) and value.kind == "dtype")
