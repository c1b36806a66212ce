"""The ports between the parts: protocols of one to three methods. Parts never import each other."""

import random
from collections.abc import Sequence
from typing import Protocol

from miscompile.core.case import Case
from miscompile.core.events import Event
from miscompile.core.outcome import Outcome
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Verdict


class Producer(Protocol):
    """Makes cases."""

    def propose(self, rng: random.Random) -> Case:
        """Return a new valid case drawn from `rng` and from what the producer has learnt."""
        ...

    def learn(self, case: Case, outcomes: Sequence[Outcome], verdict: Verdict) -> None:
        """Take notice of what came of a case that this producer proposed, and of what was made of it in the end."""
        ...


class Oracle(Protocol):
    """Plans runs and judges their outcomes; runs nothing. Both methods are pure."""

    def plan(self, case: Case, rng: random.Random) -> tuple[Run, ...]:
        """Return the runs that the first judgement needs."""
        ...

    def judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        """Judge `outcomes[i]` of `runs[i]`; after a Needs, the further runs follow the first ones."""
        ...


class PropertyOracle(Oracle, Protocol):
    """The oracle of one finding: it holds any case against the very property that the finding violates.

    Reduction and bisection ask it about smaller cases and about other builds, whatever kind of oracle it is.
    """

    @property
    def target(self) -> str:
        """Spec of the target at fault."""
        ...

    @property
    def faulty(self) -> Build:
        """The build at fault."""
        ...

    def with_faulty(self, build: Build) -> "PropertyOracle":
        """Return the same property of another build of the target at fault."""
        ...


class Runner(Protocol):
    """Executes runs in isolation."""

    def run(self, runs: Sequence[Run]) -> list[Outcome]:
        """Return one outcome for each run; a death is an outcome, never an exception."""
        ...


class Listener(Protocol):
    """Hears of what happens; useful but not needed."""

    def on(self, event: Event) -> None:
        """Take notice of `event`; must not raise."""
        ...
