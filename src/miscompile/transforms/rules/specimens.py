"""Examples of a rule's left side: types of its variables and parameters with which it is well-formed and admitted.

Shapes come from the rule's hints or from a common base, parameters from `proposals`. Examples that do not fit are
discarded and drawn again, so that this module is independent of the rules.
"""

import random
import re
from collections.abc import Iterator
from typing import Any

from miscompile.transforms.rules.kinds import KNOWN, Symbol, TermType
from miscompile.transforms.rules.proposals import Given, propose
from miscompile.transforms.rules.rule import Apply, Bindings, Rule, TermPattern, Variable, parts, type_of, variables
from miscompile.transforms.rules.terms import LANGUAGE, infer

BROKEN = (ArithmeticError, IndexError, KeyError, TypeError, ValueError)
"""Exceptions that an expression may raise for a shape that the rule's author did not consider."""

_HINTED = 0.75
_OF_ITS_OWN = 0.4
_OTHER_RESULT = frozenset({"Cast", "Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "ArgMax", "ArgMin"})
"""Operators whose result is of another element type than their operands."""


def specimen(rule: Rule, dtype: str, rng: random.Random, tries: int) -> Bindings | None:
    """Return bindings for the left side of `rule`, with tensors of `dtype` where the rule allows several types.

    None when none fits in `tries` attempts. Exceptions of `BROKEN` that a condition raises propagate.
    """
    truth = truth_values(rule.left)
    casts = any(isinstance(part, Apply) and part.op == "Cast" for part in parts(rule.left))
    square = any(isinstance(part, Apply) and part.op in ("MatMul", "Gemm") for part in parts(rule.left))
    for _ in range(tries):
        shapes = _hinted(rule, rng) if rule.shapes and rng.random() < _HINTED else {}
        base = _base(rng, square)
        environment: dict[str, Any] = {}
        own = _under_casts(rule, dtype, rng) if casts else {}
        for name in variables(rule.left):
            shape = shapes[name] if name in shapes else _shape(rng, base, square)
            environment[name] = TermType("bool" if name in truth else own.get(name, dtype), shape)
        if _filled(rule.left, environment, rng) is not None and _agrees(rule, environment):
            return environment
    return None


def _under_casts(rule: Rule, dtype: str, rng: random.Random) -> dict[str, str]:
    """Return an element type for each variable: `dtype`, or under a Cast sometimes one drawn for this Cast.

    Variables under one Cast have one type; those under different ones may differ, because a rule must not assume equal
    types there.
    """
    limits = dict(rule.limits)
    found: dict[str, str] = {}

    def walk(pattern: TermPattern, current: str) -> None:
        if isinstance(pattern, Variable):
            found.setdefault(pattern.name, current)
            return
        if pattern.op == "Cast" and rng.random() < _OF_ITS_OWN:
            among = [limits[name] for name in variables(pattern) if name in limits]
            current = rng.choice(sorted(frozenset(KNOWN).intersection(*among)) or [current])
        for argument in pattern.arguments:
            walk(argument, current)

    walk(rule.left, dtype)
    return found


def dtypes_of(rule: Rule) -> tuple[str, ...]:
    """Return the element types, in order, that the rule and the operators above its variables support."""
    taken = _taken(rule.left, rule.dtypes, truth_values(rule.left))
    return tuple(sorted(rule.dtypes.intersection(*taken)))


def _taken(pattern: TermPattern, above: frozenset[str], truth: frozenset[str]) -> Iterator[frozenset[str]]:
    """Yield the element types that each variable may have for the operators above it; Where conditions are left out."""
    if isinstance(pattern, Variable):
        if pattern.name not in truth:
            yield above
        return
    own = frozenset(LANGUAGE[pattern.op].dtypes)
    below = own if pattern.op in _OTHER_RESULT else own & above
    for argument in pattern.arguments:
        yield from _taken(argument, below, truth)


def truth_values(pattern: TermPattern) -> frozenset[str]:
    """Return the variables that must be boolean: conditions of Where."""
    found: set[str] = set()
    for part in parts(pattern):
        if isinstance(part, Apply) and part.op == "Where":
            condition = part.arguments[0]
            inside = [condition] if isinstance(condition, Variable) else list(parts(condition))
            found.update(item.name for item in inside if isinstance(item, Variable))
    return frozenset(found)


def _hinted(rule: Rule, rng: random.Random) -> dict[str, tuple[int, ...]]:
    """Return the hinted shapes, with a drawn size for each letter."""
    sizes: dict[str, int] = {}
    found = {}
    for name, text in rule.shapes:
        shape = []
        for factor, letter in re.findall(r"(\d*)([a-z]?)", text):
            if letter and letter not in sizes:
                sizes[letter] = rng.choice((1, 2, 2, 3, 4)) if letter not in "hwl" else rng.choice((2, 3, 4, 5))
            if factor or letter:
                shape.append(int(factor or 1) * sizes.get(letter, 1))
        found[name] = tuple(shape)
    return found


def _base(rng: random.Random, square: bool) -> tuple[int, ...]:
    rank = rng.choice((2, 2, 2, 3, 4)) if square else rng.choice((0, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5))
    palette = (0, 2) if rng.random() < 0.04 else rng.choice(((2,), (2, 3), (2, 3), (1, 2), (1, 2, 3), (2, 3, 4, 5)))
    return tuple(rng.choice(palette) for _ in range(rank))


def _shape(rng: random.Random, base: tuple[int, ...], square: bool) -> tuple[int, ...]:
    """Return a shape derived from `base`: the same, one that broadcasts to it, one changed axis, or a new one."""
    what = rng.random()
    if what < 0.5 or not base:
        return base
    if what < 0.65:
        return tuple(1 if rng.random() < 0.4 else size for size in base)
    if what < 0.78:
        short = base[rng.randint(1, len(base)) :]
        return tuple(1 if rng.random() < 0.2 else size for size in short)
    if what < 0.93:
        place = rng.randrange(len(base))
        return (*base[:place], rng.choice((1, 2, 3, 4)), *base[place + 1 :])
    return _base(rng, square)


def _filled(pattern: TermPattern, environment: dict[str, Any], rng: random.Random) -> TermType | None:
    """Return the type of `pattern`, drawing and binding its parameters."""
    if isinstance(pattern, Variable):
        known: TermType = environment[pattern.name]
        return known
    children = []
    for argument in pattern.arguments:
        child = _filled(argument, environment, rng)
        if child is None:
            return None
        children.append(child)
    types = tuple(children)
    names = LANGUAGE[pattern.op].parameters
    given: Given = {}
    for name, expression in zip(names, pattern.parameters, strict=True):
        if all(part in environment for part in expression.names):
            given[name] = expression.value(environment)
    parameters = given if len(given) == len(names) else propose(pattern.op, types, given, environment, rng)
    if parameters is None:
        return None
    for name, expression in zip(names, pattern.parameters, strict=True):
        if expression.variable:
            environment[expression.variable] = parameters[name]
    return infer(Symbol(pattern.op, tuple([parameters[name] for name in names]), pattern.output), types)


def _agrees(rule: Rule, environment: Bindings) -> bool:
    """Tell whether the rule admits the bindings, and the left side's expressions equal the drawn parameters."""
    return type_of(rule.left, environment) is not None and rule.admits(environment)
