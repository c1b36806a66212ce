"""Libraries of patterns for the ablation: cut from the same pairs of pass and program, each time in another way.

OATest takes blocks for passes that work on blocks and subgraphs for the others (section 3.1), and compares that with
always taking the one or the other, with the whole program, and with programs that are for no pass (section 4.4). Only
pairs that give a pattern in each of these ways are used, so that the libraries differ in nothing but how they were cut.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from evaluation.oatest.sources import batches, whole_of
from miscompile.base.rng import stream
from miscompile.core.ports import Runner
from miscompile.core.verdict import Violated
from miscompile.harvest.patterns.harvest import pattern_form_of
from miscompile.harvest.patterns.pass_miner import version_of
from miscompile.harvest.patterns.pass_observation import fired
from miscompile.harvest.patterns.pieces import case_of, smallest
from miscompile.harvest.patterns.setting import granularity_of
from miscompile.harvest.patterns.shrink import Fires
from miscompile.ops.seed import Seed
from miscompile.patterns.extract import Operators, PieceSizes, Whole, subgraphs
from miscompile.patterns.lift import lift
from miscompile.patterns.pattern import Granularity, Pattern, Trigger
from miscompile.patterns.triggers import granularities
from miscompile.targets.registry import parse_target

_BATCH = 16
_PATIENCE = 6
"""For each pair that is wanted of a pass, so many programs are looked at."""

_MOST = 40
"""Operators of the largest unit, and of the largest program."""

Told = Callable[[int, int], None]
"""Receives the number of programs examined, and the number of pairs found."""


class PassPair(NamedTuple):
    """A pass, and a program that it was observed to change, cut in every way. The pass changes each piece."""

    called: str
    label: Granularity
    whole: Seed
    unit: Seed
    block: Seed


@dataclass(frozen=True)
class Libraries:
    """The pairs, and the libraries made of them.

    `programs` is the number of programs examined; `left` counts by reason the programs that gave no pair. The patterns
    of a library are in the order of the pairs. Each is recorded as triggering the pass of its pair, which was observed,
    and no other pass.
    """

    target: str
    version: str
    pairs: tuple[PassPair, ...]
    programs: int
    left: Mapping[str, int]

    @cached_property
    def own(self) -> tuple[Pattern, ...]:
        """Each as its pass works: a block or a subgraph."""
        return self._patterns("own", lambda cut: cut.unit if cut.label == "subgraph" else cut.block)

    @cached_property
    def blocks(self) -> tuple[Pattern, ...]:
        """Always the smallest block that triggers the pass."""
        return self._patterns("block", lambda cut: cut.block)

    @cached_property
    def subgraphs(self) -> tuple[Pattern, ...]:
        """Always the connected unit in which the pass fires."""
        return self._patterns("subgraph", lambda cut: cut.unit)

    @cached_property
    def wholes(self) -> tuple[Pattern, ...]:
        """Always the whole program."""
        return self._patterns("whole", lambda cut: cut.whole)

    @property
    def tests(self) -> tuple[Seed, ...]:
        """The programs, each once, as seeds: they are what documented tests are to the paper."""
        return tuple({id(cut.whole): cut.whole for cut in self.pairs}.values())

    def at_random(self, graphs: Iterator[Whole], rng: random.Random) -> tuple[Pattern, ...]:
        """Return fragments of `graphs`, which are for no pass: as many as there are pairs, each as large as its own."""
        found: list[Pattern] = []
        for one in self.own:
            seed = next(piece for graph in graphs if (piece := fragment(graph, len(one.operators), rng)) is not None)
            title = f"random_{len(found) + 1}"
            found.append(Pattern(title, seed, lift(seed, title), "block", (), seed.source))
        return tuple(found)

    def as_json(self) -> dict[str, Any]:
        """Return what the libraries are made of as a JSON object; sizes are mean numbers of operators."""
        ways: dict[str, list[Seed]] = {
            "block": [cut.block for cut in self.pairs],
            "subgraph": [cut.unit for cut in self.pairs],
            "whole": [cut.whole for cut in self.pairs],
        }
        count = max(1, len(self.pairs))
        return {
            "pairs": len(self.pairs),
            "programs": self.programs,
            "passes": dict(Counter(cut.called for cut in self.pairs)),
            "granularity": dict(Counter(cut.label for cut in self.pairs)),
            "operators": {way: sum(len(seed.operators) for seed in seeds) / count for way, seeds in ways.items()},
            "left": dict(self.left),
        }

    def _patterns(self, way: str, choose: Callable[[PassPair], Seed]) -> tuple[Pattern, ...]:
        found = []
        for number, cut in enumerate(self.pairs, 1):
            seed, title = choose(cut), f"{way}_{number}"
            trigger = Trigger(parse_target(self.target).about.name, self.version, cut.called)
            found.append(Pattern(title, seed, lift(seed, title), cut.label, (trigger,), seed.source))
        return tuple(found)


def fragment(graph: Whole, size: int, rng: random.Random) -> Seed | None:
    """Return a random block of about `size` operators of a graph; None where none can be cut."""
    operators = Operators(graph, PieceSizes(1, size))
    starts = [place for place, fit in enumerate(operators.fit) if fit and not operators.fixed[place]]
    if not starts:
        return None
    members = operators.grown(rng.choice(starts), size, rng)
    return operators.cut(operators.with_constants(members), graph.name)


def build(
    programs: Iterable[Seed], target: str, runner: Runner, each: int, seed: int, told: Told = lambda _, __: None
) -> Libraries:
    """Look at `programs` for pairs, `each` for every pass that fires; they differ in what their smallest block is.

    Raises UsageError for a target that is not here.
    """
    search = _Search(target, runner, each, seed)
    for batch in batches(programs, _BATCH):
        search.look(batch)
        told(search.programs, len(search.pairs))
    return Libraries(target, version_of(target), tuple(search.pairs), search.programs, dict(search.left.most_common()))


@dataclass(slots=True)
class _Search:
    """The search for pairs."""

    target: str
    runner: Runner
    each: int
    seed: int
    pairs: list[PassPair] = field(default_factory=list)
    programs: int = 0
    left: Counter[str] = field(default_factory=Counter)
    forms: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    looks: Counter[str] = field(default_factory=Counter)

    def look(self, batch: Sequence[Seed]) -> None:
        """Take the pairs that programs give."""
        cases = [case_of(one, self._rng(self.programs + place)) for place, one in enumerate(batch)]
        for whole, names in zip(batch, fired(cases, self.target, self.runner), strict=True):
            self.programs += 1
            if names is None:
                self.left["programs that are not built"] += 1
            elif len(whole.graph.nodes) > _MOST:
                self.left[f"programs of more than {_MOST} operators"] += 1
            else:
                for name in sorted(names):
                    self._pair(name, whole)

    def _rng(self, number: int) -> random.Random:
        return stream(self.seed, "bench", "pair", number)

    def _pair(self, called: str, whole: Seed) -> None:
        """Take a pass and a program as a pair, if the pass has too few and the program can be cut in every way."""
        forms = self.forms[called]
        if len(forms) >= self.each or self.looks[called] >= self.each * _PATIENCE:
            return
        self.looks[called] += 1
        fires, rng = Fires(self.target, called), self._rng(self.programs)
        unit = next((one for one in self._units(whole) if self._wakes(fires, one, rng)), None)
        if unit is None:
            self.left["pairs whose pass fires in no unit of the program"] += 1
            return
        block = smallest(unit, fires, self.runner, rng)
        form = pattern_form_of(block)
        if form in forms:
            self.left["pairs like another one"] += 1
            return
        forms.add(form)
        known = granularities(parse_target(self.target).about.name).get(called)
        label = known or granularity_of(block, case_of(block, rng), fires, self.runner)
        self.pairs.append(PassPair(called, label, whole, unit, block))

    def _units(self, whole: Seed) -> Iterator[Seed]:
        return subgraphs(whole_of(whole), PieceSizes(1, _MOST), self.left)

    def _wakes(self, fires: Fires, seed: Seed, rng: random.Random) -> bool:
        runs = fires.plan(case_of(seed, rng), rng)
        return isinstance(fires.judge(runs, self.runner.run(runs)), Violated)
