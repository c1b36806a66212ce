"""The optimisation oracle: everything off against full, and against random subsets of passes and lesser levels."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from miscompile.core.case import Case
from miscompile.core.outcome import Outcome, Values
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Holds, Needs, Verdict, Violated
from miscompile.oracles.judge import Rule, is_noise, judge_pair
from miscompile.oracles.weave import NOT_NARROWED

LEVEL_SHARE = 0.3
"""Share of the lesser builds that are intermediate levels, where there are both."""


@dataclass(frozen=True, slots=True)
class Optimisation:
    """Holds the fully optimised build, and often a lesser one, against no optimisation.

    The lesser build has a random subset of `passes` off, or one of the intermediate `levels`: what one pass breaks
    another may hide.

    `disabled` those that stay off (quarantined); `narrowed` says which
    types the target computes in a narrower one by design. A crash, hang or
    error of either build is a violation as well, so this oracle includes the crash oracle.
    """

    target: str
    passes: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    lesser_chance: float = 0.8
    rule: Rule = "strict"
    disabled: frozenset[str] = field(default_factory=frozenset)
    narrowed: Mapping[str, str] = field(default_factory=lambda: NOT_NARROWED)

    def plan(self, case: Case, rng: random.Random) -> tuple[Run, ...]:
        """Return the reference run, the full run, and with probability `lesser_chance` that of a lesser build."""
        builds = [Build("off"), Build("full", self.disabled)]
        if (self.passes or self.levels) and rng.random() < self.lesser_chance:
            builds.append(self._lesser(rng))
        return tuple(Run(case, self.target, build) for build in builds)

    def _lesser(self, rng: random.Random) -> Build:
        if not self.passes or (self.levels and rng.random() < LEVEL_SHARE):
            return Build(rng.choice(self.levels), self.disabled)
        off = frozenset(name for name in self.passes if rng.random() < 0.5)
        return Build("full", off | self.disabled)

    def judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        """Judge every optimised build against the reference; the first violation decides."""
        noise = [place for place, run in enumerate(runs) if is_noise(run)]
        last: Verdict = Holds()
        for place in range(1, len(runs)):
            if place in noise or (place > 1 and _same(outcomes[0], outcomes[place])):
                continue
            chosen = [0, place, *noise[:1]]
            verdict = judge_pair([runs[i] for i in chosen], [outcomes[i] for i in chosen], self.rule, self.narrowed)
            if isinstance(verdict, Violated | Needs):
                return verdict
            if last == Holds():
                last = verdict
        return last


def _same(reference: Outcome, other: Outcome) -> bool:
    """Tell whether two runs gave the very same values; the first pair's judgement has looked at their types."""
    return isinstance(reference, Values) and isinstance(other, Values) and other.results is reference.results


@dataclass(frozen=True, slots=True)
class Crash:
    """The crash oracle: one build, and only deaths, hangs, errors and unbounded memory count."""

    target: str
    build: Build = field(default_factory=Build)

    def plan(self, case: Case, rng: random.Random) -> tuple[Run, ...]:
        """Return the one run."""
        del rng
        return (Run(case, self.target, self.build),)

    def judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        """Judge by status alone."""
        return judge_pair([runs[0], runs[0]], [outcomes[0], outcomes[0]], "strict")
