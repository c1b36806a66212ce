"""Instances of a rule on small tensors: all shapes, parameters and draws up to a bound, or a spread sample of them."""

import math
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, permutations, product, zip_longest
from typing import Any

from miscompile.transforms.rules.draws import VariableDraw
from miscompile.transforms.rules.kinds import Symbol, TermType
from miscompile.transforms.rules.proofs.parameters import options, shapes_of_size, subsets
from miscompile.transforms.rules.proposals import Given
from miscompile.transforms.rules.rule import Apply, Bindings, Rule, TermPattern, Variable, parts, type_of, variables
from miscompile.transforms.rules.specimens import specimen
from miscompile.transforms.rules.terms import LANGUAGE, infer

_BOUNDS = {1: (3, (1, 2, 3, 0)), 2: (3, (1, 2))}
"""Greatest rank, and the sizes of an axis, by the number of tensor variables."""

_MORE = (2, (1, 2))
_MANY = 5
_FEWEST = (2, (2,))
_MOST_ELEMENTS = 18
_OPTIONS = (40, 40, 12, 6)
"""Options for the parameters of an operator, by the number of operators with open parameters on the left side."""

_INSTANCES_EACH = 5
_CANDIDATES = 200
_SHAPES_TRIED = 1500
_SHAPES_PER_INSTANCE = 20
_RANDOM_TRIES = 60


@dataclass(slots=True)
class Enumeration:
    """The instances of a rule for given element types; after iteration, `complete` says whether none was left out."""

    rule: Rule
    dtypes: Mapping[str, str]
    most: int
    rng: random.Random
    complete: bool = True
    _open: int = 0

    def __post_init__(self) -> None:
        """Count the operators whose parameters the left side leaves open."""
        self._open = sum(
            isinstance(part, Apply) and any(parameter.variable for parameter in part.parameters)
            for part in parts(self.rule.left)
        )

    def __iter__(self) -> Iterator[Bindings]:
        """Yield bindings of all variables, draws and computed values. Exceptions of expressions propagate."""
        count = 0
        for shapes in self._shapes():
            for environment in self._bound(shapes):
                if count == self.most:
                    self.complete = False
                    return
                count += 1
                yield environment
        if not count:
            yield from self._at_random()

    def _shapes(self) -> Iterator[dict[str, tuple[int, ...]]]:
        names = variables(self.rule.left)
        hinted, free = _hinted(self.rule.shapes, names) if self.rule.shapes else [], _free(names)
        self.rng.shuffle(hinted)
        scalars = free.pop(0)
        self.rng.shuffle(free)
        free.insert(0, scalars)
        tried = min(_SHAPES_TRIED, self.most * _SHAPES_PER_INSTANCE)
        if len(free) > tried:
            self.complete = False
        for pair in zip_longest(hinted, free[:tried]):
            yield from (shapes for shapes in pair if shapes is not None)

    def _bound(self, shapes: Mapping[str, tuple[int, ...]]) -> list[Bindings]:
        """Return instances with the given shapes, spread over the parameters."""
        found = list(islice(self._every(shapes), _CANDIDATES))
        if len(found) <= _INSTANCES_EACH:
            return found
        self.complete = False
        return self.rng.sample(found, _INSTANCES_EACH)

    def _every(self, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[Bindings]:
        start = {name: TermType(self.dtypes[name], shape) for name, shape in shapes.items()}
        for environment, _ in self._filled(self.rule.left, start):
            if type_of(self.rule.left, environment) is not None and self.rule.admits(environment):
                yield from self._extended(environment, self.rule.draws)

    def _extended(self, environment: Bindings, draws: Sequence[VariableDraw]) -> Iterator[Bindings]:
        if not draws:
            found = dict(environment)
            for name, expression in self.rule.lets:
                found[name] = expression.value(found)
            yield found
            return
        arguments = [argument.value(environment) for argument in draws[0].arguments]
        for value in self._some(list(drawn(draws[0].function, arguments))):
            yield from self._extended({**environment, draws[0].name: value}, draws[1:])

    def _some(self, values: list[Any]) -> list[Any]:
        """Return the first value and a sample of the others."""
        first, rest = values[:1], values[1:]
        self.rng.shuffle(rest)
        most = _OPTIONS[min(self._open, len(_OPTIONS) - 1)]
        if len(values) > most:
            self.complete = False
        return [*first, *rest][:most]

    def _filled(self, pattern: TermPattern, environment: dict[str, Any]) -> Iterator[tuple[dict[str, Any], TermType]]:
        """Yield `environment` with the parameters of `pattern` bound, and the type."""
        if isinstance(pattern, Variable):
            yield environment, environment[pattern.name]
            return
        for bound, types in self._arguments(pattern.arguments, environment, ()):
            for parameters in self._parameters(pattern, types, bound):
                symbol = Symbol(pattern.op, tuple(parameters.values()), pattern.output)
                found = infer(symbol, types)
                if found is not None:
                    yield _binding(pattern, parameters, bound), found

    def _arguments(
        self, patterns: tuple[TermPattern, ...], environment: dict[str, Any], types: tuple[TermType, ...]
    ) -> Iterator[tuple[dict[str, Any], tuple[TermType, ...]]]:
        if not patterns:
            yield environment, types
            return
        for bound, found in self._filled(patterns[0], environment):
            yield from self._arguments(patterns[1:], bound, (*types, found))

    def _parameters(self, pattern: Apply, types: tuple[TermType, ...], environment: dict[str, Any]) -> list[Given]:
        names = LANGUAGE[pattern.op].parameters
        given: Given = {}
        for name, expression in zip(names, pattern.parameters, strict=True):
            if all(part in environment for part in expression.names):
                given[name] = expression.value(environment)
        found = (
            [given] if len(given) == len(names) else self._some(list(options(pattern.op, types, given, environment)))
        )
        return [{name: each[name] for name in names} for each in found]

    def _at_random(self) -> Iterator[Bindings]:
        """Yield random instances, for a rule whose left side needs larger tensors than the bound allows."""
        self.complete = False
        everywhere = replace(self.rule, chance=1.0)
        dtype = next(iter(self.dtypes.values()), "float32")
        for _ in range(self.most // 4):
            environment = specimen(everywhere, dtype, self.rng, _RANDOM_TRIES)
            extended = None if environment is None else everywhere.extend(environment, self.rng)
            if extended is not None:
                yield extended


def _binding(pattern: Apply, parameters: Given, environment: dict[str, Any]) -> dict[str, Any]:
    names = LANGUAGE[pattern.op].parameters
    fresh = {e.variable: parameters[n] for n, e in zip(names, pattern.parameters, strict=True) if e.variable}
    return {**environment, **fresh}


def _free(names: tuple[str, ...]) -> list[dict[str, tuple[int, ...]]]:
    most, sizes = _BOUNDS.get(len(names), _MORE if len(names) < _MANY else _FEWEST)
    every = [shape for rank in range(most + 1) for shape in product(sizes, repeat=rank)]
    every = [shape for shape in every if math.prod(shape) <= _MOST_ELEMENTS and (0 not in shape or len(shape) < most)]
    return [dict(zip(names, shapes, strict=True)) for shapes in product(every, repeat=len(names))]


def _hinted(hints: tuple[tuple[str, str], ...], names: tuple[str, ...]) -> list[dict[str, tuple[int, ...]]]:
    """Return the hinted shapes for all sizes of their letters, and few shapes for variables without a hint."""
    others = [name for name in names if name not in dict(hints)]
    few = [dict(zip(others, shapes, strict=True)) for shapes in product(((), (1,), (2,)), repeat=len(others))]
    letters = sorted({letter for _, text in hints for letter in re.findall("[a-z]", text)})
    choices = [(2, 3, 4) if letter in "hwl" else (1, 2, 3) if len(letters) < 4 else (1, 2) for letter in letters]
    found: list[dict[str, tuple[int, ...]]] = []
    for sizes in product(*choices):
        size = dict(zip(letters, sizes, strict=True))
        hinted = {name: _sized(text, size) for name, text in hints}
        found.extend({**hinted, **other} for other in few)
    return found


def _sized(text: str, size: Mapping[str, int]) -> tuple[int, ...]:
    parts = [(factor, letter) for factor, letter in re.findall(r"(\d*)([a-z]?)", text) if factor or letter]
    return tuple(int(factor or 1) * size.get(letter, 1) for factor, letter in parts)


def drawn(function: str, arguments: list[Any]) -> Iterator[Any]:
    """Yield every value that a draw may have, up to a bound. Raises KeyError for an unknown draw."""
    match function, arguments:
        case "axis", [count]:
            yield from range(count)
        case "permutation", [count]:
            yield from (perm for perm in permutations(range(count)) if perm != tuple(range(count)))
        case "cut", [size]:
            yield from ((first, size - first) for first in range(1, size))
        case "choice", [values]:
            yield from values
        case "subset", [values]:
            yield from subsets(tuple(values))
        case "between", [low, high]:
            yield from range(low, high + 1)
        case "pads", [rank, most]:
            yield from (pads for pads in product(range(most + 1), repeat=2 * rank) if any(pads))
        case "factors", [size]:
            yield from ((n, size // n) for n in range(2, size) if size % n == 0)
        case "factorisation", [size]:
            yield from shapes_of_size(size) if size else ()
        case _:
            raise KeyError(function)
