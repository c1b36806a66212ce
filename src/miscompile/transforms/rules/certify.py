"""The certifier: tests a rule on examples of its left side, and returns a counterexample if it is unsound.

For each example the right side has to be well-formed and of the same type, and both sides have to agree on values: on
integers always exactly, over their whole range (they wrap around); on floats as the rule's exactness class says, on
small integers, on ordinary numbers, and for exact classes on infinities, NaN, both zeros and subnormals too.

Rounding is measured in units of `eps` times the largest magnitude that occurs on either side. A rounding rule must not
introduce overflow: where every part of the left side is finite on large numbers, the right side has to be finite as
well.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.base.rng import array_stream, stream
from miscompile.core.tensor import Array
from miscompile.transforms.rules.kinds import TermType
from miscompile.transforms.rules.numbers import REGIMES, drawn, large_scale
from miscompile.transforms.rules.rule import (
    Apply,
    Bindings,
    Rule,
    TermPattern,
    Variable,
    parts,
    type_of,
    values_of,
    variables,
)
from miscompile.transforms.rules.specimens import BROKEN, dtypes_of, specimen

_TRIES = 60
"""Attempts to draw types and parameters for one example."""

_BOUND = 16.0
"""Rounding errors that a rounding rule may make, in units of eps times the largest magnitude."""

_ROOM = 2.0**-8
"""Share of the largest number that large numbers may reach on a left side; cancellation in differences is not counted.
"""

_LEAVES_RING = frozenset(
    {
        "Div", "Reciprocal", "Sqrt", "Exp", "Log", "Sin", "Cos", "Tanh", "Sigmoid", "Softmax", "ReduceMean",
        "AveragePool", "BatchNormalization",
    }
)  # fmt: skip
"""Operators whose results on small integers are not small integers; rules without them must be exact on those."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """The result of testing a rule.

    `trials` were made, in `built` of them the left side could be built and the right side drawn; `dtypes` and `ranks`
    occurred. `worst` is the largest rounding error in units of eps times magnitude. `reason` is empty, or says why the
    rule is rejected, with a counterexample.
    """

    rule: str
    trials: int
    built: int
    dtypes: tuple[str, ...]
    ranks: tuple[int, ...]
    worst: float
    reason: str = ""

    @property
    def accepted(self) -> bool:
        """Tell whether the rule was tested on at least one example and never failed."""
        return not self.reason


@dataclass(slots=True)
class _Tally:
    built: int
    dtypes: set[str]
    ranks: set[int]
    worst: float


def certify(rule: Rule, trials: int = 60, seed: int = 0) -> Certificate:
    """Return the certificate of `rule`: the same one for the same rule, number of trials and seed."""
    everywhere = replace(rule, chance=1.0)
    dtypes = dtypes_of(rule)
    tally = _Tally(0, set(), set(), 0.0)
    if not dtypes:
        return _certificate(rule, 0, tally, "its operators take none of its element types")
    for trial in range(trials):
        rng = stream(seed, "certify", rule.name, trial)
        reason = _trial(everywhere, dtypes[trial % len(dtypes)], rng, array_stream(seed, rule.name, trial), tally)
        if reason:
            return _certificate(rule, trial + 1, tally, reason)
    reason = "" if tally.built else "no example of its left side could be built: it may hold nowhere"
    return _certificate(rule, trials, tally, reason)


def _certificate(rule: Rule, trials: int, tally: _Tally, reason: str) -> Certificate:
    found = (tuple(sorted(tally.dtypes)), tuple(sorted(tally.ranks)))
    return Certificate(rule.name, trials, tally.built, *found, tally.worst, reason)


def _trial(rule: Rule, dtype: str, rng: random.Random, numbers: np.random.Generator, tally: _Tally) -> str:
    """Test one example; return the reason to reject the rule, or an empty text."""
    environment: Bindings | None = None
    try:
        environment = specimen(rule, dtype, rng, _TRIES)
        extended = None if environment is None else rule.extend(environment, rng)
        if extended is None:
            return ""
        environment = extended
        expected, found = type_of(rule.left, environment), type_of(rule.right, environment)
    except BROKEN as error:
        return f"{type(error).__name__} ({error}) in an expression{described(environment)}"
    if expected is None or found != expected:
        what = "is ill-formed" if found is None else f"has type {type_text(found)}"
        return f"the right side {what}, the left side has type {type_text(expected)}{described(environment)}"
    tally.built += 1
    tally.dtypes.add(expected.dtype)
    tally.dtypes.update(environment[name].dtype for name in variables(rule.left))
    tally.ranks.update(len(environment[name].shape) for name in variables(rule.left))
    return _values(rule, environment, numbers, tally)


def _values(rule: Rule, environment: Bindings, numbers: np.random.Generator, tally: _Tally) -> str:
    types = {name: environment[name] for name in variables(rule.left)}
    for regime in REGIMES:
        if not regime.serves(rule.exactness, tuple(kind.dtype for kind in types.values())):
            continue
        scale = large_scale(next(iter(types.values())).dtype, numbers) if regime.name == "large" else 1.0
        arrays = {name: drawn(kind, regime.name, numbers, scale) for name, kind in types.items()}
        left, right = values_of(rule.left, environment, arrays), values_of(rule.right, environment, arrays)
        if regime.name == "large" and not _has_room(values_of(_added(rule.left), environment, arrays)):
            continue
        reason = _disagreement(rule, regime.name, left, right, tally)
        if reason:
            return f"on {regime.name} numbers {reason}{described(environment)}{_given(arrays, left[-1], right[-1])}"
    return ""


def _disagreement(rule: Rule, regime: str, left: list[Array], right: list[Array], tally: _Tally) -> str:
    expected, actual = left[-1], right[-1]
    if expected.dtype != actual.dtype or expected.shape != actual.shape:
        return f"the values have other types: {expected.dtype}{expected.shape} and {actual.dtype}{actual.shape}"
    if not _is_float(expected) or (rule.exactness == "rounding" and regime == "small" and _in_ring(rule)):
        return "" if np.array_equal(expected, actual) else "the sides differ"
    if rule.exactness != "rounding":
        return "" if _same(expected, actual, rule.exactness == "zero") else "the sides differ"
    return _rounding(left, right, tally)


def _is_float(array: Array) -> bool:
    return array.dtype.kind == "f" or array.dtype.name == "bfloat16"


def _in_ring(rule: Rule) -> bool:
    return not any(
        isinstance(p, Apply) and p.op in _LEAVES_RING for side in (rule.left, rule.right) for p in parts(side)
    )


def _same(expected: Array, actual: Array, zeros: bool) -> bool:
    """Tell whether all elements are equal, NaN with NaN; `zeros` lets zeros differ in sign."""
    nans = np.isnan(expected)
    equal = (expected == actual) | (nans & np.isnan(actual))
    if not zeros:
        equal &= nans | (np.signbit(expected) == np.signbit(actual))
    return bool(equal.all())


def _rounding(left: list[Array], right: list[Array], tally: _Tally) -> str:
    """Return the defect in the rounding of the right side, or an empty text."""
    expected, actual = left[-1].astype(np.float64), right[-1].astype(np.float64)
    if not all(_finite(part) for part in left):
        return ""
    if not _finite(actual):
        return "the right side overflows or is undefined where every part of the left side is finite"
    scale = max(_magnitude(part) for part in (*left, *right))
    error = float(np.max(np.abs(expected - actual), initial=0.0))
    if error == 0:
        return ""
    unit = DTYPES[left[-1].dtype.name].eps * scale
    tally.worst = max(tally.worst, error / unit)
    return f"the sides differ by {error / unit:.3g} roundings" if error > _BOUND * unit else ""


def _added(pattern: TermPattern) -> TermPattern:
    """Return `pattern` with Add for Sub and without Neg: on positive numbers it bounds the intermediate magnitudes."""
    if isinstance(pattern, Variable):
        return pattern
    arguments = tuple([_added(argument) for argument in pattern.arguments])
    op = {"Sub": "Add", "Neg": "Identity"}.get(pattern.op, pattern.op)
    return replace(pattern, op=op, arguments=arguments)


def _has_room(parts_of_side: list[Array]) -> bool:
    """Tell whether all values are far below the largest number of their type."""
    floats = [part for part in parts_of_side if _is_float(part)]
    return all(_finite(part) and _magnitude(part) <= DTYPES[part.dtype.name].high * _ROOM for part in floats)


def _finite(array: Array) -> bool:
    return not _is_float(array) or bool(np.isfinite(array.astype(np.float64)).all())


def _magnitude(array: Array) -> float:
    return float(np.max(np.abs(array.astype(np.float64)), initial=0.0)) if _is_float(array) else 0.0


def type_text(kind: TermType | None) -> str:
    """Return a type in words, such as `float32[2, 3]`."""
    return "none" if kind is None else f"{kind.dtype}[{', '.join(map(str, kind.shape))}]"


def described(environment: Bindings | None) -> str:
    """Return the variables of an example in words."""
    return "" if not environment else "; where " + ", ".join(_bound(environment))


def _bound(environment: Bindings) -> Iterator[str]:
    for name, value in environment.items():
        yield f"{name}: {type_text(value)}" if isinstance(value, TermType) else f"{name} = {value!r}"


def _given(arrays: Mapping[str, Array], left: Array, right: Array) -> str:
    """Return the values of a counterexample in words, as far as they are short."""
    shown: dict[str, Any] = {**arrays, "left side": left, "right side": right}
    return "".join(f"; {name} = {value.tolist()}" for name, value in shown.items() if value.size <= 8)
