"""The multi-armed bandit of a campaign: it divides the CPU time among the arms by what they yield.

Every arm yields rewards at an unknown rate per CPU second. The rate has a gamma distribution, which each reward and
each second without one update (the conjugate prior of a Poisson process). Thompson sampling draws a rate for every arm
many times; the share of the draws in which an arm is the best one is its share of the time. So an arm that might be the
best keeps being tried. An arm with few data borrows from its technique and from its check. Old counts fade, because
yields end: the bugs that a technique finds are found at some time.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from miscompile.core.arms import ArmYield

NEW, CONFIRMED, PAIR = 0.3, 0.7, 0.02
"""Rewards: a new signature, its survival of triage, and a new pair of passes that fired together."""

FLOORS = 0.2
"""Share of the time that is divided evenly among all arms, whatever they yield."""

EVERYDAY = 0.25
"""Share of each target's time that the programs as people's models have them get at least."""

DRAWS = 200
"""Draws of Thompson sampling for one division of the time."""

STRENGTH = 1.0
"""Rewards that the expectation of an arm counts for, against the arm's own."""

POOLED = 3.0
"""Rewards that the expectation of a technique or a check counts for, against their own."""

HALF_LIFE = 300.0
MEMORY = 0.25
"""A count fades to one half within `HALF_LIFE` CPU seconds, or within `MEMORY` of the campaign's, if that is more."""

EXPECTED = (1.0, 10.0)
"""Rewards, and the CPU seconds that they take, which are taken for granted before there are any."""

TEST_SECONDS, TRUSTED = 0.02, 5.0
"""CPU seconds that a test is believed to cost before there is one, and the number of tests that this belief counts for,
against the arm's own."""


class SchedulableArm(Protocol):
    """What the bandit needs to know of an arm.

    Its prior `weight` is relative to that of others; `tag` is the same for all arms of a target.
    """

    @property
    def name(self) -> str: ...  # noqa: D102 - attributes of the protocol
    @property
    def technique(self) -> str: ...  # noqa: D102
    @property
    def check(self) -> str: ...  # noqa: D102
    @property
    def weight(self) -> float: ...  # noqa: D102
    @property
    def tag(self) -> str: ...  # noqa: D102
    @property
    def everyday(self) -> bool: ...  # noqa: D102


@dataclass(slots=True)
class _Memory:
    """The faded counts of an arm."""

    reward: float = 0.0
    seconds: float = 0.0
    tests: float = 0.0


def reward_of(counts: ArmYield) -> float:
    """Return the reward that an arm's counts stand for."""
    return NEW * counts.signatures + CONFIRMED * counts.confirmed + PAIR * counts.pairs


def fixed_weights(arms: Sequence[SchedulableArm]) -> dict[str, float]:
    """Return the probabilities of the arms for a test, before any yield is known; their sum is 1."""
    whole = sum(arm.weight for arm in arms)
    return _guaranteed(arms, {arm.name: arm.weight / whole for arm in arms})


@dataclass(slots=True)
class Bandit:
    """The state of the scheduler over `arms`, at least one, with different names."""

    arms: Sequence[SchedulableArm]
    _memory: dict[str, _Memory] = field(init=False)
    _spent: float = 0.0
    _fresh: float = 0.0

    def __post_init__(self) -> None:
        self._memory = {arm.name: _Memory() for arm in self.arms}

    def add(self, name: str, counts: ArmYield) -> None:
        """Add counts of an arm; those of an arm that is not scheduled are ignored."""
        memory = self._memory.get(name)
        if memory is None:
            return
        seconds = counts.cpu_us / 1e6
        memory.reward += reward_of(counts)
        memory.seconds += seconds
        memory.tests += counts.tests
        self._spent += seconds
        self._fresh += seconds

    def drop(self, name: str) -> None:
        """Leave an arm out, because it cannot test anything. The last arm stays."""
        kept = [arm for arm in self.arms if arm.name != name]
        if kept:
            self.arms = kept
            self._memory.pop(name, None)

    def shares(self, rng: random.Random) -> dict[str, float]:
        """Return the shares of the CPU time that the arms are due, with sum 1.

        Every arm has at least its even part of `FLOORS`, less the share `EVERYDAY` of it that everyday arms may need.
        """
        self._fade()
        rates = self._rates()
        best = dict.fromkeys(rates, 0)
        for _ in range(DRAWS):
            drawn = {name: rng.gammavariate(shape, scale) for name, (shape, scale) in rates.items()}
            best[max(drawn, key=drawn.__getitem__)] += 1
        floor = FLOORS / len(self.arms)
        return _guaranteed(self.arms, {name: floor + (1 - FLOORS) * won / DRAWS for name, won in best.items()})

    def weights(self, rng: random.Random) -> dict[str, float]:
        """Return the probabilities of the arms for the next tests, with sum 1: shares of time by the costs of tests."""
        shares, costs = self.shares(rng), self._costs()
        raw = {name: share / costs[name] for name, share in shares.items()}
        whole = sum(raw.values())
        return {name: one / whole for name, one in raw.items()}

    def _fade(self) -> None:
        factor = 0.5 ** (self._fresh / max(HALF_LIFE, MEMORY * self._spent))
        self._fresh = 0.0
        for memory in self._memory.values():
            memory.reward *= factor
            memory.seconds *= factor
            memory.tests *= factor

    def _rates(self) -> dict[str, tuple[float, float]]:
        """Return shape and scale of the gamma distribution of every arm's rate, in rewards a CPU second."""
        known = self._memory
        usual = (EXPECTED[0] + sum(one.reward for one in known.values())) / (
            EXPECTED[1] + sum(one.seconds for one in known.values())
        )
        mean = sum(arm.weight for arm in self.arms) / len(self.arms)
        prior = {arm.name: usual * arm.weight / mean for arm in self.arms}
        by_technique = self._factors(prior, lambda arm: arm.technique)
        by_check = self._factors(prior, lambda arm: arm.check)
        found = {}
        for arm in self.arms:
            expected = prior[arm.name] * by_technique[arm.technique] * by_check[arm.check]
            memory = known[arm.name]
            found[arm.name] = (STRENGTH + memory.reward, 1 / (STRENGTH / expected + memory.seconds))
        return found

    def _factors(self, prior: Mapping[str, float], group: Callable[[SchedulableArm], str]) -> dict[str, float]:
        """Return by group how often as much as expected its arms have yielded."""
        gained: dict[str, float] = {}
        awaited: dict[str, float] = {}
        for arm in self.arms:
            key, memory = group(arm), self._memory[arm.name]
            gained[key] = gained.get(key, POOLED) + memory.reward
            awaited[key] = awaited.get(key, POOLED) + memory.seconds * prior[arm.name]
        return {key: gained[key] / awaited[key] for key in gained}

    def _costs(self) -> dict[str, float]:
        """Return the CPU seconds of one test of each arm; an arm with few tests borrows from its check."""
        usual = {
            check: _cost([self._memory[arm.name] for arm in self.arms if arm.check == check], TEST_SECONDS)
            for check in {arm.check for arm in self.arms}
        }
        return {arm.name: _cost([self._memory[arm.name]], usual[arm.check]) for arm in self.arms}


def _cost(memories: Sequence[_Memory], believed: float) -> float:
    seconds, tests = sum(one.seconds for one in memories), sum(one.tests for one in memories)
    return (TRUSTED * believed + seconds) / (TRUSTED + tests)


def _guaranteed(arms: Sequence[SchedulableArm], shares: Mapping[str, float]) -> dict[str, float]:
    """Return `shares` with at least `EVERYDAY` of each target's for its everyday arms; the sums stay."""
    found = dict(shares)
    for tag in {arm.tag for arm in arms}:
        everyday = [arm.name for arm in arms if arm.tag == tag and arm.everyday]
        others = [arm.name for arm in arms if arm.tag == tag and not arm.everyday]
        held, rest = sum(shares[name] for name in everyday), sum(shares[name] for name in others)
        due = EVERYDAY * (held + rest)
        if everyday and others and held < due:
            found |= {name: shares[name] * due / held for name in everyday}
            found |= {name: shares[name] * (held + rest - due) / rest for name in others}
    return found
