"""Code generation for rules: functions that check a rule's conditions and build the terms of its right side.

Both become generated Python functions, like the left sides. Caching plans does not pay, because a rule is nearly always
applied to other types than the last time. The generated text consists of numbers and of names made here: it calls the
expressions of a rule's author and never contains them.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from miscompile.transforms.rules.rule import Apply, ParameterExpression, Rule, TermPattern, Variable
from miscompile.transforms.rules.terms import Symbol, TermType, newest, opset_of, typed

Match = tuple[Any, ...]
"""The class of the root, the classes of the tensor variables, the values of the parameters, and values to check."""

ParameterValues = tuple[Any, ...]
"""The types of the tensor variables, then the values of the parameters, then the drawn values."""

Admit = Callable[[Match, tuple[TermType | None, ...]], ParameterValues | None]

_OLDEST = 13


class TermStep(NamedTuple):
    """A term to add: an operand is the position of a variable, or the complement (~) of an earlier step's position."""

    symbol: Symbol
    operands: tuple[int, ...]
    kind: TermType


class TermPlan(NamedTuple):
    """The terms that a right side adds; `result`, which equals the left side, is a variable or the complement of a
    step.
    """

    steps: tuple[TermStep, ...]
    result: int


class RefusedRewrite(NamedTuple):
    """A right side that is ill-formed or of another type than the left one: the rule is not sound."""

    found: TermType | None


TermBuilder = Callable[[ParameterValues, TermType, int], TermPlan | RefusedRewrite | None]


def admit_of(
    rule: Rule, tensors: Sequence[str], parameters: Sequence[str], checks: Sequence[ParameterExpression]
) -> Admit:
    """Return the function that checks whether `rule` holds for a match and types, and returns its variables' values.

    A match ends with the values that the expressions in `checks` must equal.
    """
    writer = _Writer([*tensors, *parameters])
    writer.line(f"({''.join(f'{writer.local[name]}, ' for name in tensors)}) = types")
    for name, dtypes in rule.limits:
        writer.line(f"if {writer.local[name]}[0] not in {writer.known(dtypes)}: return None")
    for place, name in enumerate(parameters, 1 + len(tensors)):
        writer.line(f"{writer.local[name]} = match[{place}]")
    for place, expression in enumerate(checks, 1 + len(tensors) + len(parameters)):
        writer.line(f"if {writer.value(expression)} != match[{place}]: return None")
    if rule.where is not None:
        writer.line(f"if not {writer.value(rule.where)}: return None")
    writer.line(f"return ({''.join(f'{name}, ' for name in writer.local.values())})")
    function: Admit = writer.function("match, types")
    return function


def build_of(rule: Rule, tensors: Sequence[str], parameters: Sequence[str]) -> TermBuilder:
    """Return the function from values, the type of the left side and the opset to the plan of the right side.

    It returns None where the opset lacks an operator.
    """
    given = [*tensors, *parameters, *(draw.name for draw in rule.draws)]
    writer = _Writer(given)
    writer.line(f"({''.join(f'{writer.local[name]}, ' for name in given)}) = values")
    for name, expression in rule.lets:
        value = writer.value(expression)
        writer.local[name] = f"l{len(writer.local)}"
        writer.line(f"{writer.local[name]} = {value}")
    return _built(rule.right, writer, tensors)


def _built(right: TermPattern, writer: "_Writer", tensors: Sequence[str]) -> TermBuilder:
    steps: list[str] = []

    def write(pattern: TermPattern) -> tuple[int, str]:
        """Write the code that builds a part; return the reference to it and the name of its type."""
        if isinstance(pattern, Variable):
            return tensors.index(pattern.name), writer.local[pattern.name]
        operands = [write(argument) for argument in pattern.arguments]
        number = len(steps)
        symbol, kind, kinds = f"s{number}", f"k{number}", f"({''.join(f'{name}, ' for _, name in operands)})"
        writer.line(f"{symbol} = {_symbol(pattern, writer)}")
        writer.line(f"{kind} = typed({symbol}, {kinds})")
        writer.line(f"if {kind} is None: return refused(None)")
        if newest(pattern.op) > _OLDEST:
            writer.line(f"if opset < {newest(pattern.op)} and opset_of({symbol}, {kinds}) > opset: return None")
        steps.append(f"new(step, ({symbol}, {writer.known(tuple([ref for ref, _ in operands]))}, {kind}))")
        return ~number, kind

    result, found = write(right)
    writer.line(f"if {found} != kind: return refused({found})")
    writer.line(f"return new(plan, (({''.join(f'{step}, ' for step in steps)}), {result}))")
    function: TermBuilder = writer.function("values, kind, opset")
    return function


def _symbol(pattern: Apply, writer: "_Writer") -> str:
    """Write the symbol of a part: a constant where it contains no variable."""
    if not any(parameter.names for parameter in pattern.parameters):
        values = tuple([parameter.value({}) for parameter in pattern.parameters])
        return writer.known(Symbol(pattern.op, values, pattern.output))
    values_written = "".join(f"{writer.value(parameter)}, " for parameter in pattern.parameters)
    return f"new(symbol, ({writer.known(pattern.op)}, ({values_written}), {pattern.output}))"


_NAMES = {
    "typed": typed, "opset_of": opset_of, "new": tuple.__new__, "symbol": Symbol, "step": TermStep, "plan": TermPlan,
    "refused": RefusedRewrite,
}  # fmt: skip


class _Writer:
    """Writes the text of a function, with its own names for the variables."""

    def __init__(self, names: Sequence[str]) -> None:
        self.local = {name: f"x{place}" for place, name in enumerate(names)}
        self._lines: list[str] = []
        self._known: dict[str, object] = {}

    def line(self, text: str) -> None:
        """Write a line."""
        self._lines.append(f"    {text}")

    def known(self, value: object) -> str:
        """Return the name of a value that is constant in the function."""
        name = f"v{len(self._known)}"
        self._known[name] = value
        return name

    def value(self, expression: ParameterExpression) -> str:
        """Return the text that computes an expression."""
        if expression.variable is not None:
            return self.local[expression.variable]
        names, function = expression.compiled
        if not names:
            return self.known(function())
        return f"{self.known(function)}({', '.join(self.local[name] for name in names)})"

    def function(self, arguments: str) -> Any:  # noqa: ANN401 - the caller knows what it has written
        """Compile the lines to a function of `arguments`."""
        source = "\n".join([f"def made({arguments}):", *self._lines])
        names: dict[str, Any] = {**_NAMES, **self._known}
        exec(compile(source, "<right side>", "exec"), names)
        return names["made"]
