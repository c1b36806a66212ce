"""The optimisation oracle: compares the unoptimised build with the optimised one, and with a random further build.

The further build has random passes off, or an intermediate level, or a random order of passes, or gets a transformed
program.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from miscompile.base.specs import Spec
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome, Values
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence, Holds, Needs, Verdict, Violated
from miscompile.oracles.instrumentation import NOT_NARROWED
from miscompile.oracles.judge import CompareRule, is_further, judge_pair
from miscompile.oracles.kinds import OracleContext, OracleKind, RuleOption, narrowed_between
from miscompile.oracles.pair import BuildPair, pair_of
from miscompile.targets.derivatives import of_the_program, rewritten_by
from miscompile.transforms.catalogue import alters, seeded

LEVEL_SHARE = 0.3
"""Share of intermediate levels among builds with fewer optimisations, if there are passes and levels."""

FULL_SHARE = 0.7
"""Share of fully optimised builds of transformed programs; the others are unoptimised."""

THREADS = Spec("threads")
"""A pseudo-transform that stands for a build with several threads."""
MOST_THREADS = 4

THREADED, THREADED_LARGE = 0.04, 0.6
"""Share of the optimised builds with several threads, and that of programs with large tensors, whose work is shared."""

LONGEST = 12
"""Passes in the longest random sequence."""

_SEEDS = 2**31


Family: TypeAlias = tuple[tuple[Spec, ...], ...]
"""Transforms to draw from with equal probability: one alone, or several that are used together."""


def _as_it_is(transform: Spec) -> Spec:
    return transform


@dataclass(frozen=True, slots=True)
class Optimisation:
    """Holds the fully optimised build, and often a further one, against no optimisation.

    The further build comes with probability `lesser_chance`. A share `transform_share` of these see the program
    transformed: by a transform of one of the `families`, each as likely as the next. It gets a seed (`functions`
    becomes `functions{seed=123}`, `functions{depth=3}` becomes `functions{depth=3, seed=123}`); transforms that go
    together get the same seed and a build each; `threads` stands for a build with several threads. They are fully
    optimised, or not at all. A share `sequence_share` runs 1 to 12 of the passes in `sequences`, in random order and
    some of them again, before a level's own pipeline (HIRFUZZ, section 4.2.2). The rest is of a lesser kind: a random
    subset of `passes` is off, or it is one of the intermediate `levels`, because one pass may hide a bug of another.
    Shares count only where there is something to draw from.

    A share of the full builds has several threads, a larger one where the recipe says that tensors are `large`. The
    full run of a case whose recipe says `observe` tells which passes changed the program.

    `settle` completes a transform with its seed by all facts that determine its result, such as a library's digest.

    All builds but the reference are for `device`; the reference is always for the CPU. `disabled` names the passes that
    stay off in this test; `narrowed` maps the types that the target computes in a narrower type by design. A crash,
    hang or error of any build is a violation as well, so this oracle includes the crash oracle.
    """

    target: str
    passes: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    lesser_chance: float = 0.8
    rule: CompareRule = "strict"
    disabled: frozenset[str] = field(default_factory=frozenset)
    narrowed: Mapping[str, str] = field(default_factory=lambda: NOT_NARROWED)
    sequences: tuple[str, ...] = ()
    sequence_share: float = 0.35
    families: tuple[Family, ...] = ()
    transform_share: float = 0.35
    device: str = "cpu"
    settle: Callable[[Spec], Spec] = _as_it_is

    def plan(self, case: Case, rng: random.Random) -> tuple[Run, ...]:
        """Return the reference run, the full run, and with probability `lesser_chance` those of further builds."""
        watched = bool(case.recipe.get("observe"))
        threads = _threads(case)
        builds = [Build("off"), Build("full", self.disabled, threads, self.device, watched)]
        if (self.passes or self.levels or self.families or self.sequences) and rng.random() < self.lesser_chance:
            builds += self._further(rng)
        altered = next((build.transform for build in builds if alters(build.transform)), None)
        if altered:  # such a program is compared with itself only
            builds = builds[:2] + ([self._lesser(rng)] if self.passes or self.levels else [])
            rewritten = [replace(builds[1], transform=altered)] if rewritten_by(altered) else []
            builds = [*(replace(build, transform=of_the_program(altered)) for build in builds), *rewritten]
        return tuple(Run(case, self.target, build) for build in builds)

    def _further(self, rng: random.Random) -> list[Build]:
        plain = not (self.passes or self.levels)
        if self.families and ((plain and not self.sequences) or rng.random() < self.transform_share):
            return self._presented(rng)
        if self.sequences and (plain or rng.random() < self.sequence_share):
            return [self._ordered(rng)]
        return [self._lesser(rng)]

    def _presented(self, rng: random.Random) -> list[Build]:
        """Draw a transform, or several that are used together, and the level that builds its result."""
        together, seed = rng.choice(rng.choice(self.families)), rng.randrange(_SEEDS)
        if together == (THREADS,):
            return [Build("full", self.disabled, threads=rng.randint(2, MOST_THREADS), device=self.device)]
        level = "full" if rng.random() < FULL_SHARE else "off"
        off = self.disabled if level == "full" else frozenset()
        chosen = [self.settle(seeded(transform, seed)) for transform in together]
        return [Build(level, off, device=self.device, transform=transform) for transform in chosen]

    def _ordered(self, rng: random.Random) -> Build:
        """Draw a sequence of passes, and the level that runs it."""
        sequence = tuple(rng.choice(self.sequences) for _ in range(rng.randint(1, LONGEST)))
        return Build(rng.choice(("full", *self.levels)), self.disabled, device=self.device, sequence=sequence)

    def _lesser(self, rng: random.Random) -> Build:
        if not self.passes or (self.levels and rng.random() < LEVEL_SHARE):
            return Build(rng.choice(self.levels), self.disabled, device=self.device)
        off = frozenset(name for name in self.passes if rng.random() < 0.5)
        return Build("full", off | self.disabled, device=self.device)

    def judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        """Judge every optimised build against the reference; the first violation decides."""
        further = [place for place, run in enumerate(runs) if is_further(run, self.target)]
        last: Verdict = Holds()
        for place in range(1, len(runs)):
            if place in further or (place > 1 and _same(outcomes[0], outcomes[place])):
                continue
            chosen = [0, place, *further]
            verdict = judge_pair([runs[i] for i in chosen], [outcomes[i] for i in chosen], self.rule, self.narrowed)
            if isinstance(verdict, Violated | Needs):
                return verdict
            if last == Holds():
                last = verdict
        return last


def _threads(case: Case) -> int:
    """Return the threads of the optimised build, which depend on the program alone."""
    share = THREADED_LARGE if case.recipe.get("large") else THREADED
    drawn = int(case.program.digest[:8], 16)
    return 2 + drawn % (MOST_THREADS - 1) if drawn / 16**8 < share else 1


def _same(reference: Outcome, other: Outcome) -> bool:
    """Tell whether two runs gave the same values object; the judgement of the first pair has checked its types."""
    return isinstance(reference, Values) and isinstance(other, Values) and other.results is reference.results


def _hold(options: RuleOption, evidence: Evidence, context: OracleContext, facts: Mapping[str, Any]) -> BuildPair:
    """Return the pair of builds of a violation."""
    del facts
    return pair_of(evidence, options.rule or context.rule, narrowed_between(evidence, context))


KIND = OracleKind("optimisation", "optimised builds against the unoptimised one", _hold, options=RuleOption)
