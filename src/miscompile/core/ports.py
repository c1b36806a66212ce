"""The ports between the parts: protocols of one to three methods. Parts never import each other."""

import random
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from miscompile.core.case import Case
from miscompile.core.events import Event
from miscompile.core.outcome import Outcome
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Verdict


class Producer(Protocol):
    """Generates cases."""

    def propose(self, rng: random.Random) -> Case:
        """Return a new valid case, drawn from `rng` and from the producer's experience."""
        ...

    def learn(self, case: Case, outcomes: Sequence[Outcome], verdict: Verdict) -> None:
        """Learn from the outcomes and the final verdict of a case that this producer proposed."""
        ...


@runtime_checkable
class FiniteProducer(Producer, Protocol):
    """Has a fixed list of tasks, each of which gives one case; a campaign ends after the last one.

    Which lane does a task, and whether an earlier session has done it, is decided by the campaign.
    """

    @property
    def tasks(self) -> tuple[str, ...]:
        """The names of all tasks, each of them once and without line breaks, in the order in which they are done."""
        ...

    def begin(self, task: str) -> None:
        """Make `propose` return cases of `task`, or raise RejectedDraft when it has none."""
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
    """The oracle of one finding: it checks any case for the property that the finding violates.

    Reduction applies it to smaller cases and bisection to other builds, whatever kind of oracle it is.
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
    """Receives the events of a campaign; a campaign works the same without listeners."""

    def on(self, event: Event) -> None:
        """Handle `event`; must not raise."""
        ...
