"""Trigger rate: how often does a pass change the program that was made to trigger it?

The paper reads this off the coverage of the pass's own source file (section 4.4). Here a pass counts only when it is
observed to change the program, and each rule within a pass counts by itself, which is stricter.
"""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.measures import Watch
from miscompile.core.case import Case
from miscompile.core.ports import Runner
from miscompile.harvest.patterns.pass_observation import fired

_BATCH = 16


@dataclass(frozen=True, slots=True)
class TriggerRate:
    """Counts over programs with a pattern that is known to trigger certain passes, its intended passes.

    Of `watched` programs, `built` were built. In `triggered` of these, an intended pass changed the program; in
    `nothing`, no pass did. `chance` is the value of `triggered` when each program is compared with the intended passes
    of another one; it is above 0 because seeds trigger passes too. `passes` holds for each intended pass the number of
    programs with a pattern for it, and the number of those that it changed.
    """

    watched: int
    built: int
    triggered: int
    chance: int
    nothing: int
    passes: Mapping[str, tuple[int, int]]

    @property
    def rate(self) -> float:
        """Share of the programs built in which an intended pass fired; 0 where none was built."""
        return self.triggered / self.built if self.built else 0.0

    @property
    def by_chance(self) -> float:
        """The rate with the intended passes of other programs."""
        return self.chance / self.built if self.built else 0.0

    @property
    def mean_of_passes(self) -> float:
        """Mean over the intended passes of the share of their programs that they changed; 0 without any."""
        shares = [triggered / tried for tried, triggered in self.passes.values()]
        return sum(shares) / len(shares) if shares else 0.0

    def as_json(self) -> dict[str, Any]:
        """Return the counts and the rates as a JSON object."""
        names = ("chance", "nothing", "rate", "by_chance", "mean_of_passes")
        counts = {"watched": self.watched, "built": self.built, "woken": self.triggered}
        passes = {name: {"tried": tried, "woken": changed} for name, (tried, changed) in sorted(self.passes.items())}
        return {**counts, **{name: getattr(self, name) for name in names}, "passes": passes}


@dataclass(slots=True)
class Sample:
    """A uniform sample of at most `size` cases out of any number, each as likely as the next."""

    size: int
    rng: random.Random
    cases: list[Case]
    offered: int = 0

    def offer(self, case: Case) -> None:
        """Take a case in, perhaps in place of another one."""
        self.offered += 1
        if len(self.cases) < self.size:
            self.cases.append(case)
        elif (place := self.rng.randrange(self.offered)) < self.size:
            self.cases[place] = case


def sample_of(size: int, rng: random.Random) -> Sample:
    """Return an empty sample."""
    return Sample(size, rng, [])


def triggers(cases: Sequence[Case], target: str, runner: Runner, what: str, watch: Watch) -> TriggerRate | None:
    """Build synthesised `cases` and observe which passes change them.

    Cases without a known intended pass are skipped; returns None when every case is skipped.
    """
    wanted = [(case, frozenset(names)) for case in cases if (names := intended_passes(case))]
    seen: list[frozenset[str] | None] = []
    for start in range(0, len(wanted), _BATCH):
        seen += fired([case for case, _ in wanted[start : start + _BATCH]], target, runner)
        watch(what, len(seen), len(wanted))
    return tallied([names for _, names in wanted], seen) if wanted else None


def tallied(intended: Sequence[frozenset[str]], seen: Sequence[frozenset[str] | None]) -> TriggerRate:
    """Return the counts for programs whose intended passes, and those that fired (None: not built), are given."""
    pairs = [(wanted, names) for wanted, names in zip(intended, seen, strict=True) if names is not None]
    tried, triggered = Counter[str](), Counter[str]()
    for wanted, names in pairs:
        tried.update(wanted)
        triggered.update(wanted & names)
    others = [wanted for wanted, _ in pairs[1:] + pairs[:1]]
    return TriggerRate(
        watched=len(seen),
        built=len(pairs),
        triggered=sum(bool(wanted & names) for wanted, names in pairs),
        chance=sum(bool(other & names) for other, (_, names) in zip(others, pairs, strict=True)),
        nothing=sum(not names for _, names in pairs),
        passes={name: (count, triggered[name]) for name, count in tried.items()},
    )


def intended_passes(case: Case) -> list[str]:
    """Return the passes that a synthesised case's pattern is known to trigger."""
    return list(case.recipe.get("wakes", ()))
