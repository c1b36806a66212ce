"""Saturation: rules are found and applied, round by round, until a limit.

Arithmetic rules are applied to everything, their own results included. Structural rules draw their parameters; they
are applied once, in the first round, and to what stood in the program, because they would never come to an end. What is
drawn at a place depends on the seed, the rule and the name of the value there, and on nothing else: what is cut away
elsewhere in the program changes no choice.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from miscompile.base.rng import stream
from miscompile.equivalence.egraph.engine import EGraph, Index, Key, mix
from miscompile.equivalence.egraph.matching import Match, Plan, Ready, Refused, bits, flags_of, ready
from miscompile.equivalence.egraph.program import Program
from miscompile.equivalence.rules.library import chosen as named
from miscompile.equivalence.rules.rule import LOOSER, Exactness, Rule
from miscompile.equivalence.rules.terms import Type

_MASK = (1 << 64) - 1
_HALF = 1 << 32

_TRIES = 4
"""Structural rules that are tried for each one that is to be applied."""


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Rules ready for use, by kind; `rooted` has the arithmetic ones by what their root must be."""

    arithmetic: tuple[Ready, ...]
    structural: tuple[Ready, ...]
    rooted: Mapping[int, tuple[Ready, ...]]
    shaped: tuple[Ready, ...]
    """Structural rules for certain terms."""
    general: Mapping[str, tuple[Ready, ...]]
    """Structural rules for any value, by its element type."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Every rule of the set."""
        return tuple(each.rule for each in (*self.arithmetic, *self.structural))


@dataclass(frozen=True, slots=True)
class Limits:
    """How far saturation goes: rounds, terms, structural rules for each value of the program, and the share of groups.

    Each group of rules takes part with the chance `share`, by the seed. What a graph costs is how many rules are tried
    on it; over many graphs every group has its turn.
    """

    rounds: int = 2
    nodes: int = 2000
    structural: int = 1
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Tally:
    """How often each rule, by name, matched, made two classes one, was refused, or had no operator in the opset."""

    matches: Counter[str] = field(default_factory=Counter)
    unions: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    unsupported: Counter[str] = field(default_factory=Counter)


@lru_cache(8)
def chosen(groups: str = "", exactness: Exactness = "rounding") -> RuleSet:
    """Return the library's rules of these groups or names (joined with `+`; empty: all), none looser than `exactness`.

    Raises SpecError for a name that is neither a rule nor a group.
    """
    most = LOOSER.index(exactness)
    return rule_set(rule for rule in named(groups) if LOOSER.index(rule.exactness) <= most)


def rule_set(rules: Iterable[Rule]) -> RuleSet:
    """Return `rules` ready for use."""
    every = [ready(rule) for rule in rules]
    arithmetic = tuple(each for each in every if each.rule.kind == "arithmetic" and each.root is not None)
    rooted: dict[int, list[Ready]] = {}
    for each in arithmetic:
        if each.root is not None:
            rooted.setdefault(each.root, []).append(each)
    structural = tuple(each for each in every if each.rule.kind == "structural" or each.root is None)
    general: dict[str, list[Ready]] = {}
    for each in structural:
        if each.root is None:
            for dtype in sorted(each.rule.dtypes):
                general.setdefault(dtype, []).append(each)
    return RuleSet(
        arithmetic,
        structural,
        {root: tuple(found) for root, found in rooted.items()},
        tuple(each for each in structural if each.root is not None),
        {dtype: tuple(found) for dtype, found in general.items()},
    )


def saturate(program: Program, rules: RuleSet, limits: Limits, seed: int) -> Tally:
    """Add to the e-graph of `program` what the rules find equal, and return how often each was used."""
    engine = _Engine(program, limits, seed)
    for turn in range(limits.rounds):
        if not engine.turn(rules, first=turn == 0):
            break
    return engine.tally


class _Engine:
    """One saturation of one program."""

    def __init__(self, program: Program, limits: Limits, seed: int) -> None:
        self.tally = Tally()
        self._program = program
        self._graph: EGraph = program.graph
        self._limits = limits
        self._seed = seed
        self._opset = program.model.opset
        self._flags = flags_of(limits.share, seed) if limits.share < 1 else ~0
        self._seen: set[tuple[int, Match]] = set()

    def turn(self, rules: RuleSet, first: bool) -> bool:
        """Find everything, then apply everything; tell whether that changed anything."""
        graph = self._graph
        index = graph.index()
        before = len(graph), graph.classes
        found = [*self._arithmetic(rules, index)]
        if first:
            self._structural(rules, index)
        most = self._limits.nodes
        for rule, match in found:
            if len(graph) >= most:
                break
            self._apply(rule, match)
        graph.rebuild()
        return (len(graph), graph.classes) != before

    def _arithmetic(self, rules: RuleSet, index: Index) -> Iterable[tuple[Ready, Match]]:
        symbols, seen, flags, present = self._graph.symbols, self._seen, self._flags, bits(index)
        for root, top in list(index.items()):
            for each in rules.rooted.get(root, ()):
                if not each.flag & flags or each.needs & ~present:
                    continue
                key = each.key
                for match in each.find(top, index, symbols):
                    if (key, match) not in seen:
                        seen.add((key, match))
                        yield each, match

    def _structural(self, rules: RuleSet, index: Index) -> None:
        """Apply, to each value of the program, as many structural rules as the limit says, chosen by chance."""
        graph, constants, flags, present = self._graph, self._program.constants, self._flags, bits(index)
        classes = dict.fromkeys(map(graph.find, self._program.values.values()))
        within = [number for number in classes if graph.types[number] is not None and number not in constants]
        offers: dict[int, list[tuple[Ready, Match]]] = {number: [] for number in within}
        general: dict[str, list[Ready]] = {}
        for each in rules.shaped:
            if each.flag & flags and not each.needs & ~present:
                there = index[each.root] if each.root is not None else {}
                top: dict[int, list[Key]] = {number: there[number] for number in within if number in there}
                for match in each.find(top, index, graph.symbols):
                    offers[match[0]].append((each, match))
        for number in within:
            kind = graph.types[number]
            dtype = kind.dtype if kind is not None else ""
            if dtype not in general:
                general[dtype] = [each for each in rules.general.get(dtype, ()) if each.flag & flags]
            self._offer(number, offers[number], general[dtype])

    def _offer(self, number: int, special: Sequence[tuple[Ready, Match]], general: Sequence[Ready]) -> None:
        """Try rules for one value of the program in turn, those for its operator and those for any value.

        What is tried depends on the seed, the value's key and what rules there are for it.
        """
        left, key = self._limits.structural, self._graph.keys[number]
        for turn in range(_TRIES * left):
            if left <= 0 or len(self._graph) >= self._limits.nodes:
                return
            lot = mix(self._seed, key, turn)
            if special and (turn % 2 == 0 or not general):
                rule, match = special[lot % len(special)]
            elif general:
                rule, match = general[lot % len(general)], (number, number)
            else:
                return
            if (lot >> 32) < rule.chance * _HALF:
                left -= self._apply(rule, match)

    def _apply(self, each: Ready, match: Match) -> bool:
        """Add the right side of a match and make it equal to the left one; tell whether the rule holds there."""
        graph, name, kinds, find = self._graph, each.rule.name, self._graph.types, self._graph.find
        self.tally.matches[name] += 1
        root = find(match[0])
        tensors = [find(number) for number in match[1 : 1 + len(each.tensors)]]
        types = tuple([of for number in tensors if (of := kinds[number]) is not None])
        kind = kinds[root]
        if kind is None or len(types) < len(tensors):
            return False
        plan = self._drawn(each, match, types, kind) if each.draws else each.remembered(match, types, kind, self._opset)
        if plan is None:
            return False
        if isinstance(plan, Refused):
            self.tally.refused[name] += 1
            return False
        birth = (each.key * 0x9E3779B97F4A7C15 + graph.keys[root] * 0xBF58476D1CE4E5B9) & _MASK
        for number in tensors:
            birth = (birth * 3 + graph.keys[number]) & _MASK
        made: list[int] = []
        for symbol, operands, of in plan.steps:
            children = tuple([tensors[ref] if ref >= 0 else made[~ref] for ref in operands])
            birth = (birth * 5 + 1) & _MASK
            made.append(graph.add(graph.intern(symbol), children, of, birth))
        result = tensors[plan.result] if plan.result >= 0 else made[~plan.result]
        if graph.unite(root, result):
            self.tally.unions[name] += 1
        return True

    def _drawn(self, each: Ready, match: Match, types: tuple[Type, ...], kind: Type) -> Plan | Refused | None:
        """Return the plan of a rule that draws; None when it does not hold here or there is nothing to draw."""
        bound = each.environment(match, types)
        if bound is None:
            return None
        rng = stream(self._seed, "egraph", each.rule.name, self._graph.keys[match[0]])
        extended = each.rule.extend(bound, rng)
        if extended is None:
            return None
        plan = each.plan(extended, kind, self._opset)
        if plan is None:
            self.tally.unsupported[each.rule.name] += 1
        return plan
