"""Saturation: matching and applying rules, round by round, until a limit.

Arithmetic rules apply to all terms, including their own results. Structural rules draw their parameters; they apply
once, in the first round, to terms of the program, because repeated application would not terminate. A draw depends on
the seed, the rule and the name of the value alone, so that reducing the program elsewhere changes no choice.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from pathlib import Path

from miscompile.base.rng import stream
from miscompile.transforms.egraph.applying import Match, RefusedRewrite
from miscompile.transforms.egraph.engine import EGraph, Index, NodeKey, mix
from miscompile.transforms.egraph.matching import Ready, bits, flags_of, ready
from miscompile.transforms.egraph.program import TermProgram
from miscompile.transforms.rules.library import chosen as named
from miscompile.transforms.rules.library import user_rules
from miscompile.transforms.rules.rule import LOOSER, Rule, RuleExactness

_MASK = (1 << 64) - 1
_HALF = 1 << 32

_TRIES = 4
"""Structural rules tried for each one to be applied."""


@dataclass(frozen=True, slots=True)
class RuleSet:
    """Compiled rules by kind.

    `rooted` has the arithmetic ones by the signature of their root, as runs of rules whose groups have one flag.
    """

    arithmetic: tuple[Ready, ...]
    structural: tuple[Ready, ...]
    rooted: Mapping[int, tuple[tuple[int, tuple[Ready, ...]], ...]]
    shaped: tuple[Ready, ...]
    """Structural rules for certain terms."""
    general: Mapping[str, tuple[Ready, ...]]
    """Structural rules for any value, by its element type."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Every rule of the set."""
        return tuple(each.rule for each in (*self.arithmetic, *self.structural))


@dataclass(frozen=True, slots=True)
class SaturationLimits:
    """Limits of saturation: rounds, terms, structural rules for each value of the program, the share of groups.

    Each group of rules takes part with probability `share`, by the seed. The cost of a graph grows with the number of
    rules tried on it; over many graphs every group takes part.
    """

    rounds: int = 2
    nodes: int = 2000
    structural: float = 0.5
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class RuleTally:
    """How often each rule, by name, matched, merged two classes, was refused, or had no operator in the opset."""

    matches: Counter[str] = field(default_factory=Counter)
    unions: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    unsupported: Counter[str] = field(default_factory=Counter)


@lru_cache(8)
def chosen(groups: str = "", exactness: RuleExactness = "rounding", file: str = "") -> RuleSet:
    """Return the library's rules of these groups or names (joined with `+`; empty: all), none looser than `exactness`.

    `file` is the path of a TOML file with the user's own rules, which are added to the named ones, or used alone where
    none are named. Raises SpecError for a name that is neither a rule nor a group, and for a file that is malformed or
    holds an unsound rule.
    """
    most = LOOSER.index(exactness)
    rules = [*(named(groups) if groups or not file else ()), *(user_rules(Path(file)) if file else ())]
    return rule_set(rule for rule in rules if LOOSER.index(rule.exactness) <= most)


def rule_set(rules: Iterable[Rule]) -> RuleSet:
    """Compile `rules` and group them by kind."""
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
        {root: _runs(found) for root, found in rooted.items()},
        tuple(each for each in structural if each.root is not None),
        {dtype: tuple(found) for dtype, found in general.items()},
    )


def _runs(rules: Iterable[Ready]) -> tuple[tuple[int, tuple[Ready, ...]], ...]:
    return tuple((flag, tuple(run)) for flag, run in groupby(rules, lambda each: each.flag))


def saturate(program: TermProgram, rules: RuleSet, limits: SaturationLimits, seed: int) -> RuleTally:
    """Apply the rules to the e-graph of `program`, and return how often each was used."""
    engine = _Engine(program, limits, seed)
    for turn in range(limits.rounds):
        if not engine.turn(rules, first=turn == 0):
            break
    return engine.tally


class _Engine:
    """One saturation of one program."""

    def __init__(self, program: TermProgram, limits: SaturationLimits, seed: int) -> None:
        self.tally = RuleTally()
        self._program = program
        self._graph: EGraph = program.graph
        self._limits = limits
        self._seed = seed
        self._opset = program.model.opset
        self._flags = flags_of(limits.share, seed) if limits.share < 1 else ~0
        self._seen: set[tuple[int, Match]] = set()

    def turn(self, rules: RuleSet, first: bool) -> bool:
        """Run one round: find all matches, then apply them; tell whether that changed anything."""
        graph = self._graph
        index = graph.index()
        before = len(graph), graph.classes
        found = self._arithmetic(rules, index)
        if first:
            self._structural(rules, index)
        most = self._limits.nodes
        for rule, match in found:
            if len(graph) >= most:
                break
            self._apply(rule, match)
        graph.rebuild()
        return (len(graph), graph.classes) != before

    def _arithmetic(self, rules: RuleSet, index: Index) -> list[tuple[Ready, Match]]:
        symbols, seen, flags, absent = self._graph.symbols, self._seen, self._flags, ~bits(index)
        found = []
        for root, top in index.items():
            for flag, run in rules.rooted.get(root, ()):
                if not flag & flags:
                    continue
                for each in run:
                    if each.needs & absent:
                        continue
                    for match in each.find(top, index, symbols):
                        applied = each.key, match
                        if applied not in seen:
                            seen.add(applied)
                            found.append((each, match))
        return found

    def _structural(self, rules: RuleSet, index: Index) -> None:
        """Apply to each value of the program random structural rules, as many as the limit allows."""
        graph, flags, present = self._graph, self._flags, bits(index)
        within = self._within()
        offers: dict[int, list[tuple[Ready, Match]]] = {number: [] for number in within}
        general: dict[str, list[Ready]] = {}
        tops: dict[int, dict[int, list[NodeKey]]] = {}
        for each in rules.shaped:
            if each.flag & flags and each.root is not None and not each.needs & ~present:
                top = tops.get(each.root)
                if top is None:
                    there = index[each.root]
                    top = tops[each.root] = {number: there[number] for number in within if number in there}
                for match in each.find(top, index, graph.symbols):
                    offers[match[0]].append((each, match))
        for number, (lot, left) in within.items():
            kind = graph.types[number]
            dtype = kind.dtype if kind is not None else ""
            if dtype not in general:
                general[dtype] = [each for each in rules.general.get(dtype, ()) if each.flag & flags]
            self._offer(number, lot, left, offers[number], general[dtype])

    def _within(self) -> dict[int, tuple[int, int]]:
        """Return the classes of the program to which structural rules apply, each with a random number and a count.

        A fraction of a rule is rounded to one or none at random. Both depend on the seed and the value's key.
        """
        graph, constants, amount = self._graph, self._program.constants, self._limits.structural
        found = {}
        for number in dict.fromkeys(map(graph.find, self._program.values.values())):
            if graph.types[number] is not None and number not in constants:
                lot = mix(self._seed, graph.keys[number])
                left = int(amount + (lot >> 32) / _HALF)
                if left:
                    found[number] = lot, left
        return found

    def _offer(
        self, number: int, first: int, left: int, special: Sequence[tuple[Ready, Match]], general: Sequence[Ready]
    ) -> None:
        """Try rules for one value of the program in turn, those for its operator and those for any value.

        The rules tried depend on the random number `first` and on the rules available for the value.
        """
        if not special and not general:
            return
        for turn in range(1, 1 + _TRIES * left):
            if left <= 0 or len(self._graph) >= self._limits.nodes:
                return
            lot = mix(first, turn)
            if special and (turn % 2 or not general):
                rule, match = special[lot % len(special)]
            else:
                rule, match = general[lot % len(general)], (number, number)
            if (lot >> 32) < rule.chance * _HALF:
                left -= self._apply(rule, match)

    def _apply(self, each: Ready, match: Match) -> bool:
        """Add the right side of a match and merge it with the left one; tell whether the rule holds there."""
        graph, name, kinds, find, tally = self._graph, each.name, self._graph.types, self._graph.find, self.tally
        tally.matches[name] = tally.matches.get(name, 0) + 1
        root = find(match[0])
        kind = kinds[root]
        tensors = [find(number) for number in match[1 : 1 + each.count]]
        types = tuple([kinds[number] for number in tensors])
        if kind is None or None in types:
            return False
        values = each.admit(match, types)
        if values is not None and each.draws:
            values = each.drawn(values, stream(self._seed, "egraph", name, graph.keys[root]))
        if values is None:
            return False
        plan = each.build(values, kind, self._opset)
        if plan is None:
            tally.unsupported[name] += 1
            return False
        if isinstance(plan, RefusedRewrite):
            tally.refused[name] += 1
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
            tally.unions[name] = tally.unions.get(name, 0) + 1
        return True
