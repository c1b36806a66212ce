"""Mining by observation: patterns from any program that a pass is OBSERVED to change.

This needs no test, documentation or source of a compiler: a program is reduced for as long as the pass fires, and the
result is the pattern. Programs may come from any source: the generator, onnx's node cases, a user's model.
"""

import random
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from miscompile import __version__
from miscompile.base.rng import stream
from miscompile.core.case import Case
from miscompile.core.outcome import Values
from miscompile.core.ports import Runner
from miscompile.core.run import Build, Run
from miscompile.environments.resolve import versions_of
from miscompile.graph.fingerprint import fingerprint
from miscompile.graph.model import Model
from miscompile.harvest.patterns.fragment import seed_of
from miscompile.harvest.patterns.pass_observation import fired
from miscompile.harvest.patterns.setting import granularity_of
from miscompile.harvest.patterns.shrink import TRIES, Fires, shrunk
from miscompile.patterns.lift import lift
from miscompile.patterns.pattern import Pattern, Trigger
from miscompile.patterns.vetting import sound
from miscompile.targets.registry import compiler_of, parse_target
from miscompile.triage.reduce.engine import Budget

_BATCH = 16


@dataclass(frozen=True, slots=True)
class Mining:
    """The options of mining.

    `each` patterns for every pass, which differ in their operators, attributes or edges; a pass is given up
    after `patience` programs without a new pattern. A pattern has at most `most` operators, and at most `tries`
    programs are built to find it. `level` is the build level at which passes are observed.
    """

    each: int = 1
    patience: int = 8
    most: int = 20
    tries: int = TRIES
    level: str = "full"


@dataclass(slots=True)
class _Ledger:
    """The patterns found so far, and the passes that are given up."""

    found: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    kinds: dict[str, frozenset[str]] = field(default_factory=dict)
    """The passes that patterns trigger, by the digest of the pattern's graph without sizes and elements."""


def mine(
    cases: Iterable[Case],
    target: str,
    runner: Runner,
    wanted: Collection[str] | None = None,
    *,
    mining: Mining | None = None,
    rng: random.Random | None = None,
) -> Iterator[Pattern]:
    """Yield the smallest programs found, made from `cases`, that passes of `target` are observed to change.

    `wanted` names the passes (None: all of the target, with the rules inside passes). Yields each pattern as soon as it
    is found, and ends when every wanted pass has its patterns or is given up, or the cases are used up. The same
    arguments give the same patterns. Raises UsageError for a target that is not here.
    """
    search = _Search(target, runner, mining or Mining(), rng or stream(0, "mining"))
    names = frozenset(parse_target(target).about.passes if wanted is None else wanted)
    source = iter(cases)
    while batch := list(islice(source, _BATCH)):
        for case, seen in zip(batch, search.fired(batch, names), strict=True):
            for name in sorted(names & (seen or frozenset())):
                if name in search.open(names):
                    yield from search.take(case, name)
        if not search.open(names):
            return


class _Search:
    """One run of the miner."""

    def __init__(self, target: str, runner: Runner, mining: Mining, rng: random.Random) -> None:
        self.target, self.runner, self.mining, self._seed = target, runner, mining, rng.getrandbits(64)
        self._version = version_of(target)
        self._ledger = _Ledger()

    def fired(self, batch: Sequence[Case], names: frozenset[str]) -> list[frozenset[str] | None]:
        """Return the passes that change each program, among those that still lack patterns."""
        return fired(batch, self.target, self.runner, self.mining.level, self.open(names))

    def open(self, names: frozenset[str]) -> frozenset[str]:
        """Return those of `names` that still lack patterns and are not given up."""
        mining, ledger = self.mining, self._ledger
        return frozenset(
            name for name in names if ledger.found[name] < mining.each and ledger.failed[name] < mining.patience
        )

    def take(self, case: Case, name: str) -> Iterator[Pattern]:
        """Yield the pattern of the pass in `case`, if there is one and it is new."""
        ledger = self._ledger
        pattern = self._pattern(case, name)
        if pattern is None:
            ledger.failed[name] += 1
            return
        assert pattern.seed is not None
        kind = fingerprint(Model(pattern.seed.graph, {"": pattern.seed.opset}), values=False, shapes=False)
        triggered = ledger.kinds.get(kind, frozenset())
        if name in triggered and ledger.found[name]:
            ledger.failed[name] += 1
            return
        ledger.found[name] += 1
        if name not in triggered:
            ledger.kinds[kind] = triggered | pattern.triggers_on(parse_target(self.target).about.name)
            yield pattern

    def _pattern(self, case: Case, name: str) -> Pattern | None:
        mining = self.mining
        fires = Fires(self.target, name, mining.level)
        rng = stream(self._seed, "shrink", name, self._ledger.failed[name], self._ledger.found[name])
        small = shrunk(case, fires, self.runner, rng, Budget(mining.tries))
        if small is None:
            return None
        build = Build(mining.level)
        (outcome,) = self.runner.run([Run(small, self.target, build, "probe")])
        (names,) = fired([small], self.target, self.runner, mining.level)
        if not isinstance(outcome, Values) or name not in (names or ()):
            return None
        seed = seed_of(small, outcome, origin_of(case))
        if seed is None or len(seed.operators) > mining.most or not sound(seed):
            return None
        about = parse_target(self.target).about
        triggers = tuple(
            Trigger(about.name, self._version, one) for one in (name, *sorted((names or frozenset()) - {name}))
        )
        number = self._ledger.found[name] + 1
        called = re.sub(r"\W+", "_", f"{about.name}_{name}_{number}")
        granularity = granularity_of(seed, small, fires, self.runner)
        return Pattern(called, seed, lift(seed, called), granularity, triggers, seed.source)


def version_of(target: str) -> str:
    """Return the version of the compiler that a target spec names; miscompile's version for a target without a
    compiler.

    Raises UsageError when it is not installed.
    """
    compiler = compiler_of(parse_target(target).about)
    return __version__ if compiler is None else versions_of(target)[compiler]


def origin_of(case: Case) -> str:
    """Return the origin of a program according to its recipe."""
    recipe = case.recipe
    if "node_case" in recipe:
        return f"onnx node case {recipe['node_case']}"
    if "producer" in recipe:
        return f"generated by {recipe['producer']}"
    return str(recipe.get("source", "a program"))
