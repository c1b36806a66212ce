"""Words for the parameters of instances, for the origins of neighbours and for reports."""

from collections.abc import Mapping

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.core.tensor import Tensor
from miscompile.instances.instance import OperandPolicy
from miscompile.instances.values import Drawn, Held, Name, Value, tensor_of

POLICY_WORDS: Mapping[OperandPolicy, str] = {
    "fed": "every operand fed",
    "first fed": "every operand but the first a constant",
    "first constant": "the first operand a constant",
    "constant": "every operand a constant",
}
"""The operands that a program is fed with."""

_LARGE, _SMALL = 1e4, 1e-4
_WIDE = 1000


def brief(value: Value) -> str:
    """Return a value for a sentence: a tensor as type and shape, a long text shortened."""
    if isinstance(value, Held | Drawn):
        found = tensor_of(value)
        return f"{found.dtype}{list(found.shape)}"
    if isinstance(value, Name):
        return value.name
    text = repr(value) if not isinstance(value, tuple | list) else str(list(value))
    return text if len(text) <= 40 else f"{text[:36]} ..."


def class_of_elements(value: Tensor) -> str:
    """Return what the elements of a tensor are like, in one or two words."""
    kind = DTYPES[value.dtype].kind
    if kind == "string" or not value.array.size:
        return kind if value.array.size else "none"
    numbers = np.abs(value.numbers()) if kind == "complex" else value.numbers()
    if kind == "bool":
        return "all true" if numbers.all() else "mixed" if numbers.any() else "all false"
    if numbers.size > 1 and bool((numbers == numbers.flat[0]).all()):
        return "constant"
    return _floats(numbers.astype(np.float64)) if kind != "int" and kind != "uint" else _whole(numbers)


def _floats(numbers: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> str:
    if not np.isfinite(numbers).all():
        return "not finite"
    most = float(np.abs(numbers).max())
    if most > _LARGE:
        return "huge" if most > _LARGE**2 else "large"
    if most < _SMALL:
        return "tiny" if most else "zero"
    if bool((numbers == np.rint(numbers)).all()):
        return "whole"
    if bool((numbers * 2 == np.rint(numbers * 2)).all()):
        return "halves"
    return "negative" if float(numbers.max()) < 0 else "signed" if float(numbers.min()) < 0 else "positive"


def _whole(numbers: "np.ndarray[tuple[int, ...], np.dtype[np.integer[np.typing.NBitBase]]]") -> str:
    least, most = int(numbers.min()), int(numbers.max())
    wide = "wide " if most > _WIDE or least < -_WIDE else ""
    return f"{wide}signed" if least < 0 else f"{wide}natural"
