"""The term language: a subset of ONNX operators over tensors of concrete type, with inference and evaluation.

The e-graph, the rules and the certifier use this language. Nodes outside it (symbolic sizes, other operators, structure
computed at run time) are opaque to them.
"""

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from miscompile.core.tensor import Array, Tensor
from miscompile.transforms.rules import elementwise, folding, layers, movement
from miscompile.transforms.rules.kinds import ELEMENTS, FLOATING, Parameters, Symbol, TermOperator, TermType

__all__ = [
    "LANGUAGE",
    "Symbol",
    "TermOperator",
    "TermType",
    "constant",
    "evaluate",
    "infer",
    "newest",
    "opset_of",
    "typed",
]

LANGUAGE: Mapping[str, TermOperator] = MappingProxyType(
    {operator.name: operator for module in (elementwise, movement, folding, layers) for operator in module.OPERATORS}
)
"""Every entry by the name of its operator."""

_OLDEST = 13

_ADDED: Mapping[str, tuple[int, Callable[[Parameters], bool]]] = {
    "Reshape": (14, lambda parameters: 0 in parameters[0]),
    "AveragePool": (19, lambda parameters: any(dilation != 1 for dilation in parameters[3])),
}
"""Later extensions of operators: the opset, and the parameters that need it.

Before `allowzero` a size of zero meant the size of the operand.
"""

MOST_BYTES = 64
"""Greatest size of a constant with different elements; larger ones are opaque, because symbols are hashed."""


def infer(symbol: Symbol, children: tuple[TermType, ...]) -> TermType | None:
    """Return the type of a term from those of its children, or None when the term is ill-formed."""
    operator = LANGUAGE[symbol.op]
    if operator.arity is not None and len(children) != operator.arity:
        return None
    if operator.main >= 0 and (not children or children[operator.main].dtype not in operator.dtypes):
        return None
    return operator.infer(children, symbol.parameters, symbol.output)


typed = lru_cache(1 << 14)(infer)
"""`infer` with a cache, because most terms of a program have few types."""


def opset_of(symbol: Symbol, children: tuple[TermType, ...]) -> int:
    """Return the first opset (13 or later) in which the well-formed term is a valid operator call."""
    operator = LANGUAGE[symbol.op]
    first = _OLDEST if operator.main < 0 else operator.dtypes[children[operator.main].dtype]
    added = _ADDED.get(symbol.op)
    return max(first, added[0]) if added is not None and added[1](symbol.parameters) else first


def newest(op: str) -> int:
    """Return the first opset in which every well-formed term of the operator is a valid call."""
    operator = LANGUAGE[op]
    first = _OLDEST if operator.main < 0 else max(operator.dtypes.values())
    return max(first, _ADDED[op][0]) if op in _ADDED else first


def evaluate(symbol: Symbol, children: tuple[Array, ...]) -> Array:
    """Return the value of a well-formed term by the ONNX operator's page; bfloat16 in numbers of ml_dtypes.

    Integers wrap around, undefined operations of floats give NaN or infinity, without warnings.
    """
    with np.errstate(all="ignore"):
        return np.asarray(LANGUAGE[symbol.op].evaluate(children, symbol.parameters, symbol.output))


def fill_value(dtype: str, first: Array) -> int | float | bool | None:
    """Return the number in an array of one element for use in a symbol; None for -0.0 and NaN.

    Equal numbers make equal symbols: both zeros would become one symbol, and a NaN does not equal itself.
    """
    number: int | float | bool = np.asarray(first, np.float64 if dtype == "bfloat16" else None).reshape(()).item()
    if dtype in FLOATING and (math.isnan(number) or (number == 0 and math.copysign(1, number) < 0)):
        return None
    return number


def constant(value: Tensor) -> Symbol | None:
    """Return the Constant symbol for `value`; None unless it is uniform or small, and of a supported dtype."""
    if value.dtype not in ELEMENTS:
        return None
    array = np.ascontiguousarray(value.array).view(ELEMENTS[value.dtype]).reshape(value.shape)
    data = array.tobytes()
    if array.size and data == data[: array.itemsize] * array.size:
        number = fill_value(value.dtype, array.reshape(-1)[0])
        if number is not None:
            return Symbol("Constant", (value.dtype, value.shape, number))
    if array.size > MOST_BYTES:
        return None
    return Symbol("Constant", (value.dtype, value.shape, data))
