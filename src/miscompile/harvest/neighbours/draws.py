"""Steps on values: fresh draws with ties, repeats, negatives, large and small numbers, and the ends of integers."""

from collections.abc import Callable, Iterator

import numpy as np

from miscompile.base.dtypes import DTYPES
from miscompile.base.rng import array_stream
from miscompile.core.tensor import Array, Tensor, tensor
from miscompile.harvest.neighbours.call import StepView, Variation
from miscompile.instances.values import Held

ValueDraw = Callable[[np.random.Generator, tuple[int, ...], float, float], Array]
"""Draws elements of a shape; the numbers are the ends of the element type."""


def _uniform(low: float, high: float) -> ValueDraw:
    return lambda rng, shape, least, most: rng.uniform(max(low, least), min(high, most), shape)


def _powers(low: float, high: float) -> ValueDraw:
    """ValueDraw either sign and an exponent of ten between `low` and `high`."""
    return lambda rng, shape, least, most: np.clip(
        rng.choice([-1.0, 1.0], shape) * 10.0 ** rng.uniform(low, high, shape), least, most
    )


_FLOATS: dict[str, ValueDraw] = {
    "of either sign": _uniform(-3.0, 3.0),
    "with ties": lambda rng, shape, least, most: rng.integers(-2, 3, shape).astype(np.float64),
    "with halves": lambda rng, shape, least, most: rng.integers(-7, 8, shape) / 2,
    "all negative": _uniform(-4.0, -0.1),
    "large": _powers(2.0, 4.5),
    "huge": _powers(15.0, 30.0),
    "tiny": _powers(-42.0, -6.0),
    "all the same": lambda rng, shape, least, most: np.full(shape, rng.uniform(-2.0, 2.0)),
}


def _words(rng: np.random.Generator, shape: tuple[int, ...], least: float, most: float) -> Array:
    """ValueDraw over the full range of a type."""
    if least == 0:
        return rng.integers(0, int(most), shape, np.uint64, endpoint=True)
    return rng.integers(int(least), int(most), shape, np.int64, endpoint=True)


def _ends(rng: np.random.Generator, shape: tuple[int, ...], least: float, most: float) -> Array:
    numbers = [int(least), int(most), 0, 1, *([-1] if least < 0 else [])]
    dtype = np.uint64 if least == 0 else np.int64
    return np.array(numbers, dtype)[rng.integers(0, len(numbers), shape)]


_INTEGERS: dict[str, ValueDraw] = {
    "small": lambda rng, shape, least, most: rng.integers(0, 2 if most < 4 else 4, shape),
    "with ties": lambda rng, shape, least, most: rng.integers(max(int(least), -2), 2, shape),
    "of the full range": _words,
    "at the ends": _ends,
    "all the same": lambda rng, shape, least, most: np.full(shape, rng.integers(0, 2)),
}
_TRUTHS: dict[str, ValueDraw] = {
    "of both": lambda rng, shape, least, most: rng.integers(0, 2, shape),
    "all true": lambda rng, shape, least, most: np.ones(shape),
    "all false": lambda rng, shape, least, most: np.zeros(shape),
}


def draws(scene: StepView) -> Iterator[Variation]:
    """Yield the instance with each tensor drawn anew, and with all of the same kind of type drawn anew."""
    found = {name: value for name, value in scene.data().items() if value.array.size}
    seed = scene.draw.randrange(1 << 30)
    kinds: dict[str, list[str]] = {}
    for name, value in found.items():
        kinds.setdefault(DTYPES[value.dtype].kind, []).append(name)
    for kind, names in kinds.items():
        recipes = _recipes(kind)
        groups = [[name] for name in names] + ([names] if len(names) > 1 else [])
        for group in groups:
            for words, draw in recipes.items():
                values = {name: _drawn(found[name], draw, seed, name) for name in group}
                if not all(one.tensor.same(found[name]) for name, one in values.items()):
                    yield Variation(dict(values), f"{', '.join(group)} drawn {words}")


def _recipes(kind: str) -> dict[str, ValueDraw]:
    return {"float": _FLOATS, "int": _INTEGERS, "uint": _INTEGERS, "bool": _TRUTHS}.get(kind, {})


def _drawn(value: Tensor, draw: ValueDraw, seed: int, name: str) -> Held:
    facts = DTYPES[value.dtype]
    array = draw(array_stream(seed, name), value.shape, facts.low, facts.high)
    if facts.kind == "bool":
        return Held(Tensor("bool", np.asarray(array != 0)))
    return Held(tensor(np.asarray(array), value.dtype))
