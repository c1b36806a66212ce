"""Compiled rules: a function that finds the left side, and functions that apply the right side.

The left side becomes nested loops over the index of an e-graph, generated as Python and compiled on first use, because
matching and applying takes most of the time of saturation. The generated text consists of numbers and of names made
here and contains no text of a rule's author.
"""

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from zlib import crc32

from miscompile.transforms.egraph.applying import (
    Admit,
    Match,
    ParameterValues,
    RefusedRewrite,
    TermBuilder,
    TermPlan,
    admit_of,
    build_of,
)
from miscompile.transforms.egraph.engine import WORD, Index, NodeKey, NodeSignature, lottery, mix, signature
from miscompile.transforms.rules.rule import Apply, ParameterExpression, Rule, Variable
from miscompile.transforms.rules.terms import Symbol, TermType

Finder = Callable[[Mapping[int, Sequence[NodeKey]], Index, Sequence[Symbol]], list[Match]]

_GROUPS: dict[str, tuple[int, int]] = {}
"""A bit and a stable key for each group of compiled rules."""


@dataclass(slots=True)
class Ready:
    """A rule with its compiled left side."""

    rule: Rule
    """The rule, to be applied wherever it is asked to be: its chance stands in `chance`."""
    name: str
    chance: float
    key: int
    """Stable over processes and whatever other rules there are."""
    root: NodeSignature | None
    """Signature of a match's root; None where the left side is a variable."""
    tensors: tuple[str, ...]
    count: int
    """The number of tensor variables."""
    parameters: tuple[str, ...]
    needs: int
    """The signatures in the left side, as bits."""
    flag: int
    """The bit of the rule's group."""
    draws: bool
    """Whether the right side depends on chance."""
    _left: "_Writer"
    find: Finder = field(init=False)
    """The function that finds the left side; like the others it is compiled when it is first called."""
    admit: Admit = field(init=False)
    """The function that checks the rule for a match and the types of its tensors, and returns the variables' values."""
    build: TermBuilder = field(init=False)
    """The function from values, the type of the left side and the opset to the plan of the right side."""

    def __post_init__(self) -> None:
        """Put in place of each function one that compiles it."""
        self.find, self.admit, self.build = self._first_find, self._first_admit, self._first_build

    def compile(self) -> None:
        """Compile all three functions now."""
        self.find = self._left.function()
        self.admit = admit_of(self.rule, self.tensors, self.parameters, self._left.checks)
        self.build = build_of(self.rule, self.tensors, self.parameters)

    def _first_find(self, top: Mapping[int, Sequence[NodeKey]], index: Index, symbols: Sequence[Symbol]) -> list[Match]:
        self.find = self._left.function()
        return self.find(top, index, symbols)

    def _first_admit(self, match: Match, types: tuple[TermType | None, ...]) -> ParameterValues | None:
        self.admit = admit_of(self.rule, self.tensors, self.parameters, self._left.checks)
        return self.admit(match, types)

    def _first_build(self, values: ParameterValues, kind: TermType, opset: int) -> TermPlan | RefusedRewrite | None:
        self.build = build_of(self.rule, self.tensors, self.parameters)
        return self.build(values, kind, opset)

    def drawn(self, values: ParameterValues, rng: random.Random) -> ParameterValues | None:
        """Return `values` with the rule's drawn parameters; None when there is nothing to draw."""
        found: dict[str, Any] = dict(zip((*self.tensors, *self.parameters), values, strict=True))
        more = []
        for draw in self.rule.draws:
            value = draw.value(found, rng)
            if value is None:
                return None
            found[draw.name] = value
            more.append(value)
        return (*values, *more)


def ready(rule: Rule) -> Ready:
    """Return `rule` compiled; the caller decides at which share of the places it is applied."""
    left, writer = rule.left, _Writer()
    root: NodeSignature | None = None
    if isinstance(left, Variable):
        writer.tensors[left.name] = ""
    else:
        root = signature(left.op, left.output, len(left.arguments))
        writer.write(left)
    return Ready(
        rule=replace(rule, chance=1.0),
        name=rule.name,
        chance=rule.chance,
        key=_key(rule),
        root=root,
        tensors=tuple(writer.tensors),
        count=len(writer.tensors),
        parameters=tuple(writer.parameters),
        needs=bits(writer.signatures),
        flag=flag_of(rule.group),
        draws=bool(rule.draws),
        _left=writer,
    )


def _key(rule: Rule) -> int:
    return crc32(rule.name.encode())


def bits(signatures: Iterable[NodeSignature]) -> int:
    """Return signatures as bits, so that a subset test is one operation on integers."""
    found = 0
    for each in signatures:
        found |= 1 << each
    return found


def flag_of(group: str) -> int:
    """Return the bit of a group of rules; the same within one process, and never shown outside."""
    if group not in _GROUPS:
        _GROUPS[group] = (1 << len(_GROUPS), crc32(group.encode()))
    return _GROUPS[group][0]


def flags_of(share: float, seed: int) -> int:
    """Return the bits of the groups that take part under `seed`, each with probability `share`.

    The choice depends on the seed and the group's name, and not on the other groups.
    """
    lot, most, found = mix(seed), int(share * WORD), 0
    for flag, key in _GROUPS.values():
        if lottery(lot, key) < most:
            found |= flag
    return found


class _Writer:
    """Writes the loops of one left side; see `Finder` for the arguments."""

    def __init__(self) -> None:
        self.tensors: dict[str, str] = {}
        self.parameters: dict[str, str] = {}
        self.checks: list[ParameterExpression] = []
        self.signatures: dict[NodeSignature, str] = {}
        self._checked: list[str] = []
        self._lines: list[str] = []
        self._values: dict[str, object] = {}
        self._count = 0
        self._depth = 1

    def write(self, left: Apply) -> None:
        """Write the loops that find `left`."""
        self._term(left, "top.items()", depth=1)

    def function(self) -> Finder:
        """Compile the written text; without text, return a function that finds nothing."""
        found = ["r", *self.tensors.values(), *self.parameters.values(), *self._checked]
        tables = [f"    {table} = index.get({number}, nothing)" for number, table in self.signatures.items()]
        last = [f"{'    ' * self._depth}found.append(({', '.join(found)}))"] if self._lines else []
        source = "\n".join(
            ["def find(top, index, symbols):", "    found = []", *tables, *self._lines, *last, "    return found"]
        )
        names: dict[str, Any] = {"nothing": {}, **self._values}
        exec(compile(source, "<left side>", "exec"), names)
        finder: Finder = names["find"]
        return finder

    def _term(self, pattern: Apply, place: str, depth: int) -> None:
        """Write the loop over the terms of the class `place`, and their conditions."""
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
