"""Extraction: the simplest, the most complex or a random graph of an e-graph, or the program itself.

A chooser selects the term that computes a class on a layer, and the layers of its operands. The terms reachable from
the outputs form a selection. Values of the program may be *kept*: they are computed as in the program. The choices for
other values do not depend on the kept ones, so that a reducer can remove the choices one by one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from miscompile.transforms.egraph.engine import lottery, mix
from miscompile.transforms.egraph.layers import Option, Space, kept_option
from miscompile.transforms.egraph.program import OPAQUE

Pick = Literal["most", "least", "random"]

State = tuple[int, int, str]
"""A class on a layer, and no name; or the name of a value in that class that is kept."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The extracted terms, operands first: for each state its option and the states of the operands.

    `roots` are the states of the outputs of the program, by name; `kept` the values that keep their computation.
    """

    space: Space
    kept: frozenset[str]
    roots: Mapping[str, State]
    order: tuple[State, ...]
    options: Mapping[State, Option]
    operands: Mapping[State, tuple[State, ...]]

    def changed(self) -> tuple[str, ...]:
        """Return the names of the values whose classes are computed by another term than in the program."""
        used: dict[int, set[tuple[str, int, int]]] = {}
        for (number, _, name), option in self.options.items():
            if not name:
                used.setdefault(number, set()).add(_identity(option))
        program = self.space.program
        find = program.graph.find
        return tuple(
            name
            for name, number in program.values.items()
            if name not in self.kept and used.get(find(number), set()) - {_identity(kept_option(program, name))}
        )


def _identity(option: Option) -> tuple[str, int, int]:
    """Return a key that distinguishes nodes of the program from each other and from terms of rules, which share one."""
    if option.place < 0 and option.weight:
        return "", -1, -1
    name = str(option.symbol.parameters) if option.place < 0 else ""
    return name, option.place, option.symbol.output


OptionChooser = Callable[[int, int], Option]
"""Chooses for a class on a layer."""


class _Circle(Exception):  # noqa: N818 - control flow between a walk and its caller
    """The chosen terms form a cycle; holds its states."""

    def __init__(self, states: list[State]) -> None:
        super().__init__()
        self.states = states


def original(space: Space) -> Selection:
    """Return the program itself without dead nodes."""
    return _select(space, lambda number, layer: space.least[number], 0, frozenset(space.program.values))


def simplest(space: Space, kept: frozenset[str] = frozenset()) -> tuple[Selection, Selection]:
    """Return the candidates for the graph of the fewest operators: the least tree, and the least graph of a greedy
    search.

    Neither is always the smaller one: a tree counts shared work twice, and a greedy search may start badly.
    """
    least, greedy = space.least, _greedy(space)
    first = _select(space, lambda number, layer: least[number], 0, kept)
    if all(greedy[state[0]] is option for state, option in first.options.items() if not state[2]):
        return first, first
    return first, _select(space, lambda number, layer: greedy[number], 0, kept)


def layered(space: Space, pick: Pick, layers: int, seed: int, kept: frozenset[str] = frozenset()) -> Selection:
    """Return the most complex graph of `layers` layers, or a random one."""
    chooser = _most(space, layers, seed) if pick == "most" else _random(space, seed)
    return _select(space, chooser, layers, kept)


def _most(space: Space, layers: int, seed: int) -> OptionChooser:
    """Return the chooser of the option whose tree has the most operators, on each layer above the cheapest.

    Ties are broken at random, because a commuted sum is not larger but still a different program.
    """
    ranks = space.ranks
    below = space.costs
    best: dict[tuple[int, int], Option] = {(number, 0): option for number, option in space.least.items()}
    for layer in range(1, layers + 1):
        lot = mix(seed, layer)
        costs: dict[int, float] = {}
        for number, rank in ranks.items():
            most = -1.0
            among = space.options[number]
            for option in among:
                cost = float(option.weight)
                for child in option.children:
                    cost += costs[child] if ranks[child] < rank else below[child]
                if cost > most or (
                    cost == most and lottery(lot, option.birth) > lottery(lot, best[number, layer].birth)
                ):
                    most = cost
                    best[number, layer] = option
            costs[number] = most
        below = costs
    return lambda number, layer: best[number, layer]


def _random(space: Space, seed: int) -> OptionChooser:
    """Return the chooser of a random option; each draw depends on the seed, the class, the layer and the option."""
    keys = space.program.graph.keys

    def choose(number: int, layer: int) -> Option:
        if layer == 0:
            return space.least[number]
        lot = mix(seed, keys[number], layer)
        return max(space.options[number], key=lambda option: lottery(lot, option.birth))

    return choose


def _greedy(space: Space) -> dict[int, Option]:
    """Return the options of the least graph of a greedy search: each class keeps the smallest set of classes it needs.

    Sets are bits of an integer. An option whose operands need the class itself is skipped.
    """
    bits = {number: 1 << place for place, number in enumerate(space.ranks)}
    sets: dict[int, int] = {}
    counts: dict[int, int] = {}
    found: dict[int, Option] = {}
    changed = True
    while changed:
        changed = False
        for number, bit in bits.items():
            best = counts.get(number)
            for option in space.options[number]:
                needed = _union(option, sets)
                if needed is None or needed & bit:
                    continue
                if option.weight:
                    needed |= bit
                count = needed.bit_count()
                if best is None or count < best:
                    best = counts[number] = count
                    sets[number] = needed
                    found[number] = option
                    changed = True
    return found


def _union(option: Option, sets: dict[int, int]) -> int | None:
    """Return the set of operators that the operands of an option need; None when one has no set yet."""
    needed = 0
    for child in option.children:
        known = sets.get(child)
        if known is None:
            return None
        needed |= known
    return needed


def _select(space: Space, chooser: OptionChooser, top: int, kept: frozenset[str]) -> Selection:
    """Return the selection of `chooser` for the outputs, with the values in `kept` computed as in the program.

    Keeping some values may close a cycle. The values of the program on that cycle are then kept too, until there is
    none; this ends because the program itself has no cycle.
    """
    while True:
        try:
            return _Walk(space, chooser, top, kept).run()
        except _Circle as circle:
            more = kept.union(*(space.names.get(state[0], ()) for state in circle.states))
            kept = more if more != kept else frozenset(space.program.values)


class _Walk:
    """One walk from the outputs to the leaves."""

    def __init__(self, space: Space, chooser: OptionChooser, top: int, kept: frozenset[str]) -> None:
        self._space = space
        self._program = space.program
        self._choose = chooser
        self._top = top
        self._kept = kept
        self._options: dict[State, Option] = {}
        self._operands: dict[State, tuple[State, ...]] = {}
        self._order: list[State] = []
        self._done: set[State] = set()

    def run(self) -> Selection:
        """Return the selection. Raises _Circle."""
        roots: dict[str, State] = {}
        for info in self._program.model.graph.outputs:
            number = self._program.graph.find(self._program.values[info.name])
            roots[info.name] = state = (number, self._top, info.name if info.name in self._kept else "")
            if state not in self._options:
                self._visit(state)
        return Selection(self._space, self._kept, roots, tuple(self._order), self._options, self._operands)

    def _visit(self, root: State) -> None:
        options, done, order, enter = self._options, self._done, self._order, self._enter
        stack = [(root, iter(enter(root)))]
        while stack:
            state, waiting = stack[-1]
            for child in waiting:
                if child not in options:
                    below = enter(child)
                    if below:
                        stack.append((child, iter(below)))
                        break
                    done.add(child)
                    order.append(child)
                elif child not in done:
                    places = [each for each, _ in stack]
                    raise _Circle(places[places.index(child) :])
            else:
                done.add(state)
                order.append(state)
                stack.pop()

    def _enter(self, state: State) -> tuple[State, ...]:
        """Choose the option of a state; return the states of its operands."""
        number, layer, name = state
        option = kept_option(self._program, name) if name else self._choose(number, layer)
        self._options[state] = option
        below: tuple[State, ...] = ()
        if not option.children:
            pass
        elif self._kept:
            below = self._below_kept(number, layer, option)
        elif layer == 0 or option.symbol.op == OPAQUE:
            at = self._top if option.symbol.op == OPAQUE else 0
            below = tuple([(child, at, "") for child in option.children])
        else:
            ranks = self._space.ranks
            rank = ranks[number]
            below = tuple([(child, layer if ranks[child] < rank else layer - 1, "") for child in option.children])
        self._operands[state] = below
        return below

    def _below_kept(self, number: int, layer: int, option: Option) -> tuple[State, ...]:
        ranks = self._space.ranks
        reads = self._program.origins[option.place].reads if option.place >= 0 else (None,) * len(option.children)
        found = []
        for child, name in zip(option.children, reads, strict=True):
            at = layer if layer == 0 or ranks[child] < ranks[number] else layer - 1
            found.append((child, self._top if option.opaque else at, self._called(child, name)))
        return tuple(found)

    def _called(self, number: int, name: str | None) -> str:
        """Return the name of the kept value that is read where a class is read: as the value `name`, or as any value of
        the class.
        """
        names = self._space.names.get(number)
        if not names:
            return ""
        if name is not None:
            return name if name in self._kept else ""
        return names[0] if all(each in self._kept for each in names) else ""
