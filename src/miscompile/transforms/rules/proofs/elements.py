"""Symbolic elements of tensors: a table of terms in which equal terms have one number, and obligations made of them.

Both sides of a rule become arrays of such numbers. Where the numbers agree, both sides apply the same operators to the
same elements, whatever the element type. Where they differ, the pair is an obligation, which is named independently of
the place of its elements, so that many places and many rules share it.
"""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

GENERIC = "T"
"""The element type that a rule leaves open; a proof puts each type that the rule admits in its place."""


class Element(NamedTuple):
    """One element: an operator of the language on `children`, or a Variable or a Constant.

    Reductions have all their operands as children. `parameters` are those that matter for one element: the number of a
    Variable, the value of a Constant, the place of an element in a Softmax. `sort` is an element type, or GENERIC.
    """

    op: str
    parameters: tuple[Hashable, ...]
    sort: str
    children: tuple[int, ...]


class ElementTable:
    """Elements by number; equal elements have one number."""

    def __init__(self) -> None:
        self._elements: list[Element] = []
        self._numbers: dict[Element, int] = {}

    def add(self, op: str, sort: str, children: tuple[int, ...] = (), parameters: tuple[Hashable, ...] = ()) -> int:
        """Return the number of an element, a new one where it was unknown."""
        element = Element(op, tuple([(type(p).__name__, p) for p in parameters]), sort, children)
        found = self._numbers.get(element)
        if found is None:
            found = self._numbers[element] = len(self._elements)
            self._elements.append(Element(op, parameters, sort, children))
        return found

    def __getitem__(self, number: int) -> Element:
        """Return the element of a number. Raises IndexError."""
        return self._elements[number]


@dataclass(frozen=True, slots=True)
class Obligation:
    """The statement that two elements are equal for all values of their variables.

    `elements` holds each before those that use it; `left` and `right` are places in it. Variables are numbered in the
    order of their first occurrence.
    """

    elements: tuple[Element, ...]
    left: int
    right: int

    @property
    def variables(self) -> tuple[Element, ...]:
        """The variables, by number."""
        return tuple(element for element in self.elements if element.op == "Variable")

    @property
    def operators(self) -> frozenset[str]:
        """The operators that occur, without variables and constants."""
        return frozenset(e.op for e in self.elements) - {"Variable", "Constant"}

    def typed(self, dtype: str) -> "Obligation":
        """Return the obligation with `dtype` for the open element type."""
        elements = tuple([e._replace(sort=dtype) if e.sort == GENERIC else e for e in self.elements])
        return Obligation(elements, self.left, self.right)

    @property
    def generic(self) -> bool:
        """Tell whether the element type is open."""
        return any(element.sort == GENERIC for element in self.elements)


def obligation(table: ElementTable, left: int, right: int) -> Obligation:
    """Return the obligation that two elements of `table` are equal."""
    places: dict[int, int] = {}
    elements: list[Element] = []
    variables = 0
    for number in (*_in_order(table, left), *_in_order(table, right)):
        if number in places:
            continue
        element = table[number]
        if element.op == "Variable":
            element = element._replace(parameters=(variables,))
            variables += 1
        places[number] = len(elements)
        elements.append(element._replace(children=tuple([places[child] for child in element.children])))
    return Obligation(tuple(elements), places[left], places[right])


def _in_order(table: ElementTable, root: int) -> Iterator[int]:
    """Yield the numbers below `root`, children first, each once."""
    seen: set[int] = set()
    pending = [(root, False)]
    while pending:
        number, ready = pending.pop()
        if ready:
            yield number
        elif number not in seen:
            seen.add(number)
            pending.append((number, True))
            pending.extend((child, False) for child in reversed(table[number].children))
