"""Compilers that compute in a narrower type by design: the comparisons that stay valid for a program's results.

OpenVINO's CPU plugin, for example, computes float64 in float32 and int64 in int32. Integers that fit the narrower type
must be exact; values that overflow it cannot be judged; floats agree to the narrower type's rounding, unless they may
exceed float16. An integer type
that maps to itself saturates, or does not wrap around: values that reach its limits cannot be judged.
"""

from collections.abc import Iterable, Mapping
from typing import Literal

import numpy as np

from miscompile.base.dtypes import DTYPES, is_float
from miscompile.base.errors import ModelError
from miscompile.core.case import Case
from miscompile.core.tensor import Tensor
from miscompile.graph.read import read
from miscompile.graph.specialise import folded, is_symbolic, specialised
from miscompile.ops.analysis import every_value
from miscompile.ops.facts import Facts

Fit = Literal["fits", "rounds", "overflows"]
FITS: tuple[Fit, ...] = ("fits", "rounds", "overflows")
"""From best to worst."""

_EXACT_INTEGERS = {"float32": 2.0**24, "float16": 2.0**11, "bfloat16": 2.0**8}

_LARGEST = {"float16": 65504.0}
"""Largest numbers of the float types that the values of ordinary programs exceed."""


def fit_of(case: Case, narrowed: Mapping[str, str]) -> Fit:
    """Return how the values of `case` fit the types that `narrowed` maps their types to.

    `overflows` also when some value is unknown, such as those within local functions.
    """
    if not narrowed:
        return "fits"
    worst: Fit = "fits"
    try:
        written = read(case.program.payload)
        names = [port.name for port in case.program.inputs]
        for feed in case.feeds:
            model = written
            if is_symbolic(case.program.inputs):
                model = folded(specialised(written, {n: value.shape for n, value in zip(names, feed, strict=True)}))
            operands = every_value(model, dict(zip(names, feed, strict=True)))
            if operands is None:
                return "overflows"
            fits = {_fit(o.facts, o.dtype, narrowed[o.dtype]) for o in operands if o.dtype in narrowed}
            if "overflows" in fits:
                return "overflows"
            worst = "rounds" if "rounds" in fits else worst
    except ModelError:
        return "overflows"
    return worst


def exceed(values: Iterable[Tensor], narrowed: Mapping[str, str]) -> bool:
    """Tell whether an element of `values` is beyond the narrower type in which a compiler computes by design."""
    for value in values:
        narrow = narrowed.get(value.dtype, value.dtype)
        if narrow == value.dtype or not value.array.size:
            continue
        numbers, limits = value.numbers(), DTYPES[narrow]
        finite = numbers[np.isfinite(numbers)]
        if finite.size and (finite.min() < limits.low or finite.max() > limits.high):
            return True
    return False


def _fit(facts: Facts, dtype: str, narrow: str) -> Fit:
    if is_float(narrow):
        if facts.magnitude > _LARGEST.get(narrow, np.inf):
            return "overflows"
        whole = facts.integral and facts.magnitude <= _EXACT_INTEGERS.get(narrow, 0.0)
        return "fits" if whole else "rounds"
    limits = np.iinfo(narrow)
    if narrow == dtype and facts.lo <= limits.min < 0:
        return "overflows"
    if narrow == dtype and facts.hi >= limits.max:
        return "overflows"
    return "fits" if facts.inside(float(limits.min), float(limits.max)) else "overflows"
