"""Rules made ready for use: a function that finds the left side, and the plan of a right side.

The left side becomes nested loops over the index of an e-graph, written as Python and compiled once, because finding is
most of what saturation does. What is written consists of numbers and of names made here: nothing that a rule's author
wrote stands in it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from zlib import crc32

from miscompile.base.rng import stream
from miscompile.equivalence.egraph.engine import Index, Key, Signature, mix, signature, typed
from miscompile.equivalence.rules.rule import Apply, Expression, Pattern, Rule, Variable
from miscompile.equivalence.rules.terms import Symbol, Type, opset_of

Match = tuple[Any, ...]
"""The class of the root, the classes of the tensor variables, and the values of the parameters."""

Finder = Callable[[Mapping[int, Sequence[Key]], Index, Sequence[Symbol]], list[Match]]

_MOST_PLANS = 32
"""Plans that a rule remembers: combinations of types repeat within a program, and seldom from one to the next."""


_GROUPS: dict[str, int] = {}
"""A bit for each group of rules that was ever made ready."""

_WORD = 1 << 64

_UNUSED = stream(0, "egraph")
"""Stands for the random stream where a rule draws nothing."""


class Step(NamedTuple):
    """A term to add: operands are variables by their place, or earlier steps by the complement of theirs."""

    symbol: Symbol
    operands: tuple[int, ...]
    kind: Type


class Plan(NamedTuple):
    """What a right side adds, and what then equals the left side: a variable, or the complement of a step."""

    steps: tuple[Step, ...]
    result: int


class Refused(NamedTuple):
    """A right side that is ill-formed or of another type than the left one: the rule is not sound."""

    found: Type | None


class Recipe(NamedTuple):
    """A term of a right side before anything is bound; operands as in a step."""

    op: str
    output: int
    parameters: tuple[Expression, ...]
    operands: tuple[int, ...]
    fixed: Symbol | None
    """The symbol, where nothing has to be bound for it."""


@dataclass(slots=True)
class Ready:
    """A rule with its compiled left side."""

    rule: Rule
    """The rule, to be applied wherever it is asked to be: its chance stands in `chance`."""
    chance: float
    key: int
    """Stable over processes and whatever other rules there are."""
    root: Signature | None
    """What the root of a match must be; None where the left side is a variable."""
    find: Finder
    tensors: tuple[str, ...]
    parameters: tuple[str, ...]
    checks: tuple[tuple[int, Expression], ...]
    """Expressions that a matched parameter must equal, with the place of that parameter in a match."""
    needs: int
    """The signatures that the left side asks for, as bits."""
    flag: int
    """The bit of the rule's group."""
    draws: bool
    """Whether the right side depends on chance."""
    recipes: tuple[Recipe, ...]
    result: int
    plans: dict[tuple[Any, ...], Plan | Refused | None] = field(default_factory=dict)

    def environment(self, match: Match, types: Sequence[Type]) -> dict[str, Any] | None:
        """Return what the left side has bound, or None when the rule does not hold for it."""
        found: dict[str, Any] = dict(zip(self.tensors, types, strict=True))
        first = 1 + len(self.tensors)
        for place, name in enumerate(self.parameters, first):
            found[name] = match[place]
        for place, expression in self.checks:
            if expression.value(found) != match[place]:
                return None
        return found if self.rule.admits(found) else None

    def plan(self, bound: Mapping[str, Any], kind: Type, opset: int) -> Plan | Refused | None:
        """Return what the right side adds; None when an operator of it does not exist at `opset`.

        `bound` is the environment with all that was drawn, `kind` the type of the left side.
        """
        given = [bound[name] for name in self.tensors]
        steps: list[Step] = []
        for op, output, parameters, operands, fixed in self.recipes:
            symbol = fixed or Symbol(op, tuple([value.value(bound) for value in parameters]), output)
            kinds = tuple([given[ref] if ref >= 0 else steps[~ref].kind for ref in operands])
            of = typed(symbol, kinds)
            if of is None:
                return Refused(None)
            if opset_of(symbol, kinds) > opset:
                return None
            steps.append(Step(symbol, operands, of))
        result = self.result
        found: Type = given[result] if result >= 0 else steps[~result].kind
        return Plan(tuple(steps), result) if found == kind else Refused(found)

    def remembered(self, match: Match, types: tuple[Type, ...], kind: Type, opset: int) -> Plan | Refused | None:
        """Return the plan for a match, worked out once for the same types and parameters; for rules without chance."""
        key = (types, match[1 + len(self.tensors) :], opset)
        if key in self.plans:
            return self.plans[key]
        bound: Mapping[str, Any] | None = self.environment(match, types)
        if bound is not None and self.rule.lets:
            bound = self.rule.extend(bound, _UNUSED)
        found = None if bound is None else self.plan(bound, kind, opset)
        if len(self.plans) >= _MOST_PLANS:
            self.plans.clear()
        self.plans[key] = found
        return found


def _recipes(pattern: Pattern, tensors: Sequence[str], found: list[Recipe]) -> int:
    """Append the recipes of `pattern`, operands first, and return the reference to its result."""
    if isinstance(pattern, Variable):
        return tensors.index(pattern.name)
    operands = tuple([_recipes(argument, tensors, found) for argument in pattern.arguments])
    fixed = None if pattern.parameters else Symbol(pattern.op, (), pattern.output)
    found.append(Recipe(pattern.op, pattern.output, pattern.parameters, operands, fixed))
    return ~(len(found) - 1)


def ready(rule: Rule) -> Ready:
    """Return `rule` with its left side compiled; at which share of the places it is used is the caller's affair."""
    left, writer = rule.left, _Writer()
    root: Signature | None = None
    finder: Finder = _nothing
    if isinstance(left, Variable):
        writer.tensors[left.name] = ""
    else:
        root = signature(left.op, left.output, len(left.arguments))
        finder = writer.finder(left)
    tensors = tuple(writer.tensors)
    first = 1 + len(tensors) + len(writer.parameters)
    recipes: list[Recipe] = []
    result = _recipes(rule.right, tensors, recipes)
    return Ready(
        rule=replace(rule, chance=1.0),
        chance=rule.chance,
        key=_key(rule),
        root=root,
        find=finder,
        tensors=tensors,
        parameters=tuple(writer.parameters),
        checks=tuple(enumerate(writer.checks, first)),
        needs=bits(writer.signatures),
        flag=flag_of(rule.group),
        draws=bool(rule.draws),
        recipes=tuple(recipes),
        result=result,
    )


def _key(rule: Rule) -> int:
    return crc32(rule.name.encode())


def bits(signatures: Iterable[Signature]) -> int:
    """Return signatures as bits, so that whether some are among others is one operation on integers."""
    found = 0
    for each in signatures:
        found |= 1 << each
    return found


def flag_of(group: str) -> int:
    """Return the bit of a group of rules; the same within one process, and never shown outside."""
    return 1 << _GROUPS.setdefault(group, len(_GROUPS))


def flags_of(share: float, seed: int) -> int:
    """Return the bits of the groups that take part under `seed`: each does with the chance `share`.

    That depends on the seed and the group's name, and not on what other groups there are.
    """
    found = 0
    for group, place in _GROUPS.items():
        if mix(seed, crc32(group.encode())) < share * _WORD:
            found |= 1 << place
    return found


def _nothing(top: Mapping[int, Sequence[Key]], index: Index, symbols: Sequence[Symbol]) -> list[Match]:
    return []


class _Writer:
    """Writes the loops of one left side; see `Finder` for what they are called with."""

    def __init__(self) -> None:
        self.tensors: dict[str, str] = {}
        self.parameters: dict[str, str] = {}
        self.checks: list[Expression] = []
        self.signatures: dict[Signature, str] = {}
        self._checked: list[str] = []
        self._lines: list[str] = []
        self._values: dict[str, object] = {}
        self._count = 0

    def finder(self, left: Apply) -> Finder:
        """Return the function that finds `left`."""
        self._term(left, "top.items()", depth=1)
        depth = self._depth
        found = ["r", *self.tensors.values(), *self.parameters.values(), *self._checked]
        tables = [f"    {table} = index.get({number}, nothing)" for number, table in self.signatures.items()]
        source = "\n".join([
            "def find(top, index, symbols):",
            "    found = []",
            *tables,
            *self._lines,
            f"{'    ' * depth}found.append(({', '.join(found)}))",
            "    return found",
        ])  # fmt: skip
        names: dict[str, Any] = {"nothing": {}, **self._values}
        exec(compile(source, f"<{left.op}>", "exec"), names)
        finder: Finder = names["find"]
        return finder

    def _term(self, pattern: Apply, place: str, depth: int) -> None:
        """Write the loop over the terms of a class, and what they must be; `place` is the class."""
        number = self._count
        self._count += 1
        table = self.signatures.setdefault(
            signature(pattern.op, pattern.output, len(pattern.arguments)), f"t{len(self.signatures)}"
        )
        if depth == 1:
            self._line(1, f"for r, n{number} in {place}:")
            depth = 2
        else:
            self._line(depth, f"n{number} = {table}.get({place})")
            self._line(depth, f"if n{number} is None: continue")
        self._line(depth, f"for k{number} in n{number}:")
        self._depth = depth + 1
        self._parameters(pattern, number)
        later: list[tuple[Apply, str]] = []
        for slot, argument in enumerate(pattern.arguments, 1):
            if isinstance(argument, Apply):
                later.append((argument, f"k{number}[{slot}]"))
            else:
                self._bind(self.tensors, argument.name, f"k{number}[{slot}]", "c")
        for inner, where in later:
            self._term(inner, where, self._depth)

    def _parameters(self, pattern: Apply, number: int) -> None:
        if not pattern.parameters:
            return
        self._line(self._depth, f"p{number} = symbols[k{number}[0]][1]")
        for slot, expression in enumerate(pattern.parameters):
            value = f"p{number}[{slot}]"
            if expression.variable is not None:
                self._bind(self.parameters, expression.variable, value, "q")
            elif not expression.names:
                known = f"v{len(self._values)}"
                self._values[known] = expression.value({})
                self._line(self._depth, f"if {value} != {known}: continue")
            else:
                self.checks.append(expression)
                self._checked.append(value)

    def _bind(self, bound: dict[str, str], name: str, value: str, letter: str) -> None:
        if name in bound:
            self._line(self._depth, f"if {value} != {bound[name]}: continue")
        else:
            bound[name] = f"{letter}{len(bound)}"
            self._line(self._depth, f"{bound[name]} = {value}")

    def _line(self, depth: int, text: str) -> None:
        self._lines.append("    " * depth + text)
