"""Preparation of extraction: the order of classes, their levels, and least costs.

An e-graph has cycles: x is also split(concat(x, x)). A choice of one term for each class may therefore form a cycle.
Two restrictions exclude cycles by construction, without retries:

- *Layers.* A choice is made for a class on a layer. From a class to an operand that comes before it in the order of a
  depth-first search the layer stays; along every other edge it falls by one; on layer 0 each class has its cheapest
  term, and cheapest terms never form a cycle. A class has at most one term on each layer. The number of layers
  therefore bounds how many different computations of one value a graph may hold, and thereby its complexity.
- *Levels.* A node outside the language must occur once in the extracted graph, so its operands are always computed on
  the top layer. The level of a value of the program is the number of such nodes on the path to it; a class admits a
  term only when the term needs no higher level than the class has. An operand of such a node can therefore never
  depend on the node itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

from miscompile.transforms.egraph.engine import EGraph
from miscompile.transforms.egraph.program import LEAVES, OPAQUE, VALUE, TermProgram
from miscompile.transforms.rules.terms import Symbol

_FREE = LEAVES | {"Constant"}
"""Symbols that do not count as operators of an extracted graph."""


class Option(NamedTuple):
    """A term that may be chosen for a class; `weight` is 1 for an operator and 0 for a leaf.

    `place` is the position of the program's node, -1 for inputs, initialisers and terms made by rules.
    """

    symbol: Symbol
    children: tuple[int, ...]
    weight: int
    place: int
    birth: int

    @property
    def opaque(self) -> bool:
        """Whether the term represents a node outside the language."""
        return self.symbol.op == OPAQUE


@dataclass(frozen=True, slots=True)
class Space:
    """The classes below the outputs of a program, in the order of a depth-first search, with their options.

    `ranks` are positions in that order, `names` the names of the program's values in each class, `costs` the least
    number of operators of a tree for each class, and `least` the option that has it.
    """

    program: TermProgram
    ranks: dict[int, int]
    options: dict[int, tuple[Option, ...]]
    names: dict[int, list[str]]
    costs: dict[int, float]
    least: dict[int, Option]


def space_of(program: TermProgram) -> Space:
    """Return the extraction space for the outputs of `program` after saturation."""
    graph = program.graph
    find = graph.find
    roots = tuple(dict.fromkeys(find(program.values[info.name]) for info in program.model.graph.outputs))
    found, order = _search(graph, roots)
    names = program.names()
    if any(option.opaque for options in found.values() for option in options):
        firsts = {number: kept_option(program, names[number][0]) for number in order if number in names}
        found = _admitted(found, order, firsts)
    costs, least = _cheapest(found, order)
    ranks = {number: place for place, number in enumerate(order)}
    return Space(program, ranks, found, names, costs, least)


def kept_option(program: TermProgram, name: str) -> Option:
    """Return how the program computes the value called `name`."""
    own = program.own[name]
    operands = program.origins[own.place].operands if own.place >= 0 else ()
    children = tuple(map(program.graph.find, operands))
    return Option(own.symbol, children, 0 if own.symbol.op in _FREE else 1, own.place, 0)


def _search(graph: EGraph, roots: Sequence[int]) -> tuple[dict[int, tuple[Option, ...]], list[int]]:
    """Return the options of every class below `roots`, and these classes, operands first except for cycles."""
    found: dict[int, tuple[Option, ...]] = {}
    order: list[int] = []
    stack: list[tuple[int, list[int]]] = []
    for root in roots:
        if root in found:
            continue
        stack.append((root, _enter(graph, root, found)))
        while stack:
            number, waiting = stack[-1]
            while waiting:
                child = waiting.pop()
                if child not in found:
                    stack.append((child, _enter(graph, child, found)))
                    break
            else:
                order.append(number)
                stack.pop()
    return found, order


def _enter(graph: EGraph, number: int, found: dict[int, tuple[Option, ...]]) -> list[int]:
    """Record the options of a class and return the classes of their operands, the first one last."""
    find, symbols, terms, origins = graph.find, graph.symbols, graph.terms, graph.origins
    options = []
    below: dict[int, None] = {}
    named = False
    for node in graph.members[number]:
        key = terms[node]
        if key is None:
            continue
        children = tuple([find(child) for child in key[1:]])
        symbol = symbols[key[0]]
        op = symbol.op
        if op == "Constant" and named:
            continue  # the class has the initialiser itself
        named = named or op == VALUE
        weight = 0 if op in _FREE else 1
        options.append(Option(symbol, children, weight, origins.get(node, -1), graph.births[node]))
        for child in children:
            below[child] = None
    found[number] = tuple(options)
    return list(below)[::-1]


def _admitted(
    options: dict[int, tuple[Option, ...]], order: Sequence[int], firsts: dict[int, Option]
) -> dict[int, tuple[Option, ...]]:
    """Return the options that need no higher level than their class has."""
    levels: dict[int, float] = {}
    _settle_program(levels, firsts)
    waiting = [number for number in order if number not in levels]
    changed = True
    while changed:
        changed = False
        for number in waiting:
            level = min([_level(option, levels) for option in options[number]])
            if level < levels.get(number, inf):
                levels[number] = level
                changed = True
    admitted = {}
    for number in order:
        among, most = options[number], levels.get(number, inf)
        if len(among) > 1:
            among = tuple([option for option in among if _level(option, levels) <= most])
        admitted[number] = among
    return admitted


def _settle_program(levels: dict[int, float], firsts: dict[int, Option]) -> None:
    """Record the levels of the program's classes, each as the program computes it."""
    for start in firsts:
        stack = [start]
        while stack:
            number = stack[-1]
            if number not in firsts:  # a constant that only a node outside the language reads
                levels[number] = 0.0
                stack.pop()
                continue
            waiting = [child for child in firsts[number].children if child not in levels]
            if waiting:
                stack.extend(waiting)
                continue
            levels[number] = _level(firsts[number], levels)
            stack.pop()


def _level(option: Option, levels: dict[int, float]) -> float:
    below = 0.0
    for child in option.children:
        level = levels.get(child, inf)
        if level > below:
            below = level
    return below + 1 if option.symbol.op == OPAQUE else below


def _cheapest(
    options: dict[int, tuple[Option, ...]], order: Sequence[int]
) -> tuple[dict[int, float], dict[int, Option]]:
    """Return the least number of operators of a tree for each class, and the option that has it.

    An operand costs strictly less than an operator on it, and a leaf has no operands: least options form no cycle.
    """
    costs: dict[int, float] = dict.fromkeys(order, inf)
    least: dict[int, Option] = {}
    changed = True
    while changed:
        changed = False
        for number in order:
            best = costs[number]
            for option in options[number]:
                cost = float(option.weight)
                for child in option.children:
                    cost += costs[child]
                if cost < best:
                    best = cost
                    least[number] = option
                    changed = True
            costs[number] = best
    return costs, least
