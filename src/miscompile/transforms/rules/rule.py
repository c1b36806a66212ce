"""The values of the rule library: patterns, and rules from pattern to pattern.

A rule states that every instance of its left side equals the instance of its right side under the same bindings. It is
data: a condition on types, drawn structural parameters, and an exactness class that the certifier tests.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from miscompile.core.tensor import Array
from miscompile.transforms.rules.draws import VariableDraw
from miscompile.transforms.rules.expressions import Bindings, ParameterExpression
from miscompile.transforms.rules.kinds import Symbol, TermType
from miscompile.transforms.rules.terms import LANGUAGE, evaluate, infer

__all__ = ["Apply", "Bindings", "ParameterExpression", "Rule", "RuleExactness", "RuleKind", "TermPattern", "Variable"]

RuleExactness = Literal["bits", "zero", "rounding"]
"""Bit-exact (except for NaN payloads) | exact except for the sign of zero | rounding in floats, exact on integers.

`bits` and `zero` hold for every input, infinities and NaN included; `rounding` for finite ones that do not overflow.
"""

LOOSER: tuple[RuleExactness, ...] = ("bits", "zero", "rounding")
"""The classes, each looser than the one before."""

RuleKind = Literal["arithmetic", "structural"]
"""Structural rules are applied once, to terms of the program, and not to their own results."""


@dataclass(frozen=True, slots=True)
class Variable:
    """Stands for any term."""

    name: str

    def __str__(self) -> str:
        """Return the variable in the notation of rule files."""
        return self.name


@dataclass(frozen=True, slots=True)
class Apply:
    """An operator applied to `arguments`, with `parameters` in the order of the language."""

    op: str
    parameters: tuple[ParameterExpression, ...]
    arguments: tuple["TermPattern", ...]
    output: int = 0

    def __str__(self) -> str:
        """Return the pattern in the notation of rule files, such as `Transpose(Add(x, y), perm=p)`."""
        names = LANGUAGE[self.op].parameters
        named = [f"{name}={value.text}" for name, value in zip(names, self.parameters, strict=True)]
        which = f"[{self.output}]" if self.output or self.op == "Split" else ""
        return f"{self.op}({', '.join([*map(str, self.arguments), *named])}){which}"


TermPattern: TypeAlias = Variable | Apply


def variables(pattern: TermPattern) -> tuple[str, ...]:
    """Return the names of the tensor variables of `pattern`, each once, from left to right."""
    return tuple(dict.fromkeys(part.name for part in parts(pattern) if isinstance(part, Variable)))


def parts(pattern: TermPattern) -> Iterator[TermPattern]:
    """Yield `pattern` and its parts, each before its arguments."""
    yield pattern
    if isinstance(pattern, Apply):
        for argument in pattern.arguments:
            yield from parts(argument)


@dataclass(frozen=True, slots=True)
class Rule:
    """One direction of an equivalence.

    On the left side the first occurrence of a parameter that is a bare variable binds it, and later ones are compared;
    any other expression is compared with its value once all bare variables are bound. `limits` holds the element types
    that each tensor variable may have, `dtypes` those of the first one. `shapes` are hints for the certifier, in which
    letters are sizes. `chance` is the share of the places at which a structural rule is applied, because a rule that
    matches every term would otherwise be applied everywhere. `source` cites the origin of the equivalence.
    """

    name: str
    group: str
    left: TermPattern
    right: TermPattern
    exactness: RuleExactness
    dtypes: frozenset[str]
    source: str
    kind: RuleKind = "arithmetic"
    where: ParameterExpression | None = None
    draws: tuple[VariableDraw, ...] = ()
    lets: tuple[tuple[str, ParameterExpression], ...] = ()
    limits: tuple[tuple[str, frozenset[str]], ...] = ()
    shapes: tuple[tuple[str, str], ...] = ()
    chance: float = 1.0

    def admits(self, environment: Bindings) -> bool:
        """Tell whether the bindings of the left side satisfy the rule's element types and side condition."""
        for name, dtypes in self.limits:
            if environment[name].dtype not in dtypes:
                return False
        return self.where is None or bool(self.where.value(environment))

    def extend(self, environment: Bindings, rng: random.Random) -> Bindings | None:
        """Return `environment` extended by the right side's drawn parameters, then by the `let` values.

        None when a draw has no value, or when `chance` excludes the place. The draws are a function of `rng` alone, so
        the caller decides what the choice depends on.
        """
        if self.chance < 1 and rng.random() >= self.chance:
            return None
        if not self.draws and not self.lets:
            return environment
        found: dict[str, Any] = dict(environment)
        for draw in self.draws:
            value = draw.value(found, rng)
            if value is None:
                return None
            found[draw.name] = value
        for name, expression in self.lets:
            found[name] = expression.value(found)
        return found


def symbol_of(pattern: Apply, environment: Bindings) -> Symbol:
    """Return the symbol at the root of an instance. Raises KeyError where a variable is not bound."""
    return Symbol(pattern.op, tuple([p.value(environment) for p in pattern.parameters]), pattern.output)


def type_of(pattern: TermPattern, environment: Bindings) -> TermType | None:
    """Return the type of an instance, or None when some part of it is ill-formed."""
    if isinstance(pattern, Variable):
        found: TermType = environment[pattern.name]
        return found
    children = []
    for argument in pattern.arguments:
        child = type_of(argument, environment)
        if child is None:
            return None
        children.append(child)
    return infer(symbol_of(pattern, environment), tuple(children))


def values_of(pattern: TermPattern, environment: Bindings, arrays: Mapping[str, Array]) -> list[Array]:
    """Return the values of all parts of a well-formed instance, that of the whole last."""
    if isinstance(pattern, Variable):
        return [arrays[pattern.name]]
    found: list[Array] = []
    children = []
    for argument in pattern.arguments:
        found.extend(values_of(argument, environment, arrays))
        children.append(found[-1])
    found.append(evaluate(symbol_of(pattern, environment), tuple(children)))
    return found
