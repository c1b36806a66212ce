"""Instances of patterns: type and value of a pattern under bindings of its variables."""

from collections.abc import Mapping

from miscompile.core.tensor import Array
from miscompile.transforms.rules.expressions import Bindings
from miscompile.transforms.rules.kinds import Symbol, TermType
from miscompile.transforms.rules.rule import Apply, TermPattern, Variable
from miscompile.transforms.rules.terms import evaluate, infer


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
