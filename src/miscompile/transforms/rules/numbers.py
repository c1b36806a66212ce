"""Test values for rules: small, ordinary and large numbers, and special values of their type."""

from dataclasses import dataclass

import numpy as np

from miscompile.base.dtypes import DTYPES, FLOATS
from miscompile.core.tensor import Array
from miscompile.transforms.rules.kinds import ELEMENTS, TermType

_EXACT = ("bits", "zero")


@dataclass(frozen=True, slots=True)
class Regime:
    """A distribution of test values; `exactness` holds the classes of rules it is for, `floats`: floats only."""

    name: str
    exactness: tuple[str, ...]
    floats: bool

    def serves(self, exactness: str, dtypes: tuple[str, ...]) -> bool:
        """Tell whether the regime applies to operands of `dtypes` for a rule of that class."""
        return exactness in self.exactness and (not self.floats or any(dtype in FLOATS for dtype in dtypes))


REGIMES = (
    Regime("small", ("bits", "zero", "rounding"), floats=False),
    Regime("ordinary", ("bits", "zero", "rounding"), floats=False),
    Regime("large", ("rounding",), floats=True),
    Regime("special", _EXACT, floats=True),
)


def drawn(kind: TermType, regime: str, rng: np.random.Generator, scale: float = 1.0) -> Array:
    """Return an array of type `kind`.

    `small` are small integers, `ordinary` numbers about 1 (integers: of the whole range), `large` ones floats about
    `scale`, all positive and of one order of magnitude, and `special` ones infinities, NaN, both zeros, subnormals and
    extremes.
    """
    dtype, shape = kind
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in FLOATS:
        return _float(kind, regime, rng, scale)
    info = np.iinfo(ELEMENTS[dtype])
    if regime == "small":
        return rng.integers(0 if info.min == 0 else -4, 5, shape).astype(ELEMENTS[dtype])
    found = rng.integers(info.min, info.max, shape, ELEMENTS[dtype], endpoint=True)
    edges = rng.choice(np.array([info.min, info.max, 0, 1, info.max - 1], ELEMENTS[dtype]), shape)
    return np.asarray(np.where(rng.random(shape) < 0.3, edges, found))


def large_scale(dtype: str, rng: np.random.Generator) -> float:
    """Return an order of magnitude, at least 1, whose sums of a few numbers do not overflow in `dtype`.

    A rule whose sides multiply equally many factors overflows on both sides or on neither.
    """
    most = {"float32": 120, "bfloat16": 120, "float16": 11, "float64": 1000}.get(dtype, 0)
    return float(2.0 ** rng.integers(0, most + 1))


def _float(kind: TermType, regime: str, rng: np.random.Generator, scale: float) -> Array:
    dtype, shape = kind
    target = ELEMENTS[dtype]
    if regime == "small":
        return np.asarray(rng.integers(-4, 5, shape)).astype(target)
    if regime == "large":
        return np.asarray(rng.uniform(1, 4, shape) * scale).astype(target)
    found = rng.standard_normal(shape) * np.exp2(rng.integers(-3, 4, shape))
    if regime != "special":
        return np.asarray(found).astype(target)
    about = DTYPES[dtype]
    least = {"float32": 2.0**-126, "float16": 2.0**-14, "bfloat16": 2.0**-126, "float64": 2.0**-1022}[dtype]
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, about.high, -about.high, least, least / 4, -least / 8]
    special = rng.choice(np.array(edges), shape)
    return np.asarray(np.where(rng.random(shape) < 0.6, special, found)).astype(target)
