"""The values of the rule library: patterns, and rules from pattern to pattern.

A rule says that every term of its left side equals the term that its right side makes of the same variables. It is
data: where it holds is a condition on types, what it draws are structural parameters, and how exactly it holds is a
class that the certifier tests.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from miscompile.transforms.rules.draws import VariableDraw
from miscompile.transforms.rules.expressions import Bindings, ParameterExpression
from miscompile.transforms.rules.terms import LANGUAGE

__all__ = ["Apply", "Bindings", "ParameterExpression", "Rule", "RuleExactness", "RuleKind", "TermPattern", "Variable"]

RuleExactness = Literal["bits", "zero", "rounding"]
"""Bit-exact (but for the payload of a NaN) | exact but for the sign of zero | rounding in floats, exact on integers.

`bits` and `zero` hold for every input, infinities and NaN included; `rounding` for finite ones that do not overflow.
"""

LOOSER: tuple[RuleExactness, ...] = ("bits", "zero", "rounding")
"""The classes, each looser than the one before."""

RuleKind = Literal["arithmetic", "structural"]
"""Structural rules are applied once, to what stood in the program, and not to their own results."""


@dataclass(frozen=True, slots=True)
class Variable:
    """Stands for any term."""

    name: str

    def __str__(self) -> str:
        """Return the variable as a rule file has it."""
        return self.name


@dataclass(frozen=True, slots=True)
class Apply:
    """Stands for an operator applied to what `arguments` stand for; `parameters` in the order of the language."""

    op: str
    parameters: tuple[ParameterExpression, ...]
    arguments: tuple["TermPattern", ...]
    output: int = 0

    def __str__(self) -> str:
        """Return the pattern as a rule file has it, such as `Transpose(Add(x, y), perm=p)`."""
        names = LANGUAGE[self.op].parameters
        named = [f"{name}={value.text}" for name, value in zip(names, self.parameters, strict=True)]
        which = f"[{self.output}]" if self.output or self.op == "Split" else ""
        return f"{self.op}({', '.join([*map(str, self.arguments), *named])}){which}"


TermPattern: TypeAlias = Variable | Apply


def variables(pattern: TermPattern) -> tuple[str, ...]:
    """Return the names of the tensor variables of `pattern`, each once, from left to right."""
    return tuple(dict.fromkeys(part.name for part in parts(pattern) if isinstance(part, Variable)))


def parts(pattern: TermPattern) -> Iterator[TermPattern]:
    """Yield `pattern` and everything inside it, a part before its arguments."""
    yield pattern
    if isinstance(pattern, Apply):
        for argument in pattern.arguments:
            yield from parts(argument)


@dataclass(frozen=True, slots=True)
class Rule:
    """One direction of an equivalence.

    On the left side a parameter that is a bare variable is bound where it first stands, and compared after that; any
    other expression is compared with what it gives once all bare variables are bound. `limits` holds the element types
    that each tensor variable may have, `dtypes` those of the first one. `shapes` are hints for the certifier, which
    shapes to try: letters are sizes. `chance` is the share of the places at which a structural rule is applied at all,
    since one that matches everything would be everywhere. `source` says where the equivalence comes from.
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
        """Tell whether the rule holds for what the left side has bound: element types and side condition."""
        for name, dtypes in self.limits:
            if environment[name].dtype not in dtypes:
                return False
        return self.where is None or bool(self.where.value(environment))

    def extend(self, environment: Bindings, rng: random.Random) -> Bindings | None:
        """Return `environment` with what the right side needs besides: drawn parameters, then `let` values.

        None when there is nothing to draw, or where chance leaves the place alone. The draws are a function of `rng`
        alone, so the caller decides what a place's choice depends on.
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
