"""Random structural parameters: the functions of a rule's `draw` lines.

The parameters of each function are a random stream and the values of its arguments; it returns the drawn value, or None
when no value exists. Draws have few and small values, so that a place in a program keeps its choice while a reducer
shrinks the program around it.
"""

import ast
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from miscompile.base.errors import SpecError
from miscompile.transforms.rules.expressions import Bindings, ParameterExpression, expression


def _axis(rng: random.Random, count: int) -> int | None:
    return rng.randrange(count) if count else None


def _permutation(rng: random.Random, count: int) -> tuple[int, ...] | None:
    """A permutation that moves something; half of the time it exchanges two axes only."""
    if count < 2:
        return None
    places = list(range(count))
    if rng.random() < 0.5:
        first, second = rng.sample(places, 2)
        places[first], places[second] = places[second], places[first]
    while places == sorted(places):
        rng.shuffle(places)
    return tuple(places)


def _cut(rng: random.Random, size: int) -> tuple[int, int] | None:
    """Two sizes of at least 1 that make up `size`, as often as not uneven."""
    if size < 2:
        return None
    first = rng.randrange(1, size)
    return first, size - first


def _choice(rng: random.Random, values: Sequence[Any]) -> Any:  # noqa: ANN401 - whatever is chosen from
    options = list(values)
    return rng.choice(options) if options else None


def _subset(rng: random.Random, values: Sequence[Any]) -> tuple[Any, ...] | None:
    """Some of `values`, at least one, in their order."""
    options = list(values)
    if not options:
        return None
    chosen = [value for value in options if rng.random() < 0.5]
    return tuple(chosen or [rng.choice(options)])


def _between(rng: random.Random, low: int, high: int) -> int | None:
    return rng.randint(low, high) if low <= high else None


def _pads(rng: random.Random, rank: int, most: int) -> tuple[int, ...] | None:
    """Pads of all axes, begins and then ends; one of them is not zero."""
    if not rank:
        return None
    pads = [rng.randint(0, most) if rng.random() < 0.5 else 0 for _ in range(2 * rank)]
    if not any(pads):
        pads[rng.randrange(2 * rank)] = rng.randint(1, most)
    return tuple(pads)


def _factors(rng: random.Random, size: int) -> tuple[int, int] | None:
    """Two numbers whose product is `size`, neither 1."""
    options = [(factor, size // factor) for factor in range(2, size) if size % factor == 0]
    return rng.choice(options) if options else None


def _shape(rng: random.Random, size: int) -> tuple[int, ...] | None:
    """A shape of 1 to 4 axes for `size` elements; ones among them are rare."""
    if size < 1:
        return None
    sizes = [size]
    for _ in range(rng.randrange(4)):
        place = rng.randrange(len(sizes))
        pair = _factors(rng, sizes[place])
        if pair is None:
            pair = (1, sizes[place])
            if rng.random() < 0.7:
                continue
        sizes[place : place + 1] = pair
    return tuple(sizes)


DRAWS: Mapping[str, Callable[..., Any]] = {
    "axis": _axis,
    "permutation": _permutation,
    "cut": _cut,
    "choice": _choice,
    "subset": _subset,
    "between": _between,
    "pads": _pads,
    "factors": _factors,
    "factorisation": _shape,
}


@dataclass(frozen=True, slots=True)
class VariableDraw:
    """One `draw` line: the variable, the function, and its arguments."""

    name: str
    function: str
    arguments: tuple[ParameterExpression, ...]

    def value(self, environment: Bindings, rng: random.Random) -> Any:  # noqa: ANN401 - whatever is drawn
        """Return the drawn value, or None when no value exists."""
        return DRAWS[self.function](rng, *[argument.value(environment) for argument in self.arguments])


def drawing(name: str, source: str, where: str) -> VariableDraw:
    """Parse a draw such as `cut(x.shape[0])` from `source`. Raises SpecError."""
    found = _drawn(source.strip())
    if found is None:
        raise SpecError(f"{where}: '{source}' draws nothing; there are: {', '.join(sorted(DRAWS))}")
    return VariableDraw(name, *found)


@cache
def _drawn(source: str) -> tuple[str, tuple[ParameterExpression, ...]] | None:
    """Return function and arguments; cached, because many rules have equal draws."""
    try:
        tree = ast.parse(source, mode="eval").body
    except SyntaxError:
        return None
    if (
        not isinstance(tree, ast.Call)
        or not isinstance(tree.func, ast.Name)
        or tree.func.id not in DRAWS
        or tree.keywords
    ):
        return None
    return tree.func.id, tuple([expression(source[a.col_offset : a.end_col_offset]) for a in tree.args])
