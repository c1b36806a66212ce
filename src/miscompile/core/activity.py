"""Pass activity: how often each pass changed a program, alone and with others, and how often a pattern triggered it.

The counts are sums, so that the counts of lanes, sessions and campaigns can be added.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NamedTuple

from miscompile.core.outcome import Outcome, Values
from miscompile.core.run import Run


class Key(NamedTuple):
    """The name of one count for `target`; `kind` says which programs it counts.

    programs: programs compiled with observation. fired: programs that the pass `one` changed. together: programs that
    `one` and `other` changed. tried, woken: programs with a pattern of the pass `one`, and those of them that it
    changed.
    """

    kind: str
    target: str
    one: str = ""
    other: str = ""


@dataclass(slots=True)
class PassActivity:
    """Counts of pass activity.

    `frames` maps each rewrite rule to the pass that runs it, because observation sees only that pass. `names` maps the
    spec of each target to the name under which its passes are counted in all of its versions.
    """

    frames: Mapping[str, str] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    counts: Counter[Key] = field(default_factory=Counter)

    def note(self, recipe: Mapping[str, Any], run: Run, outcome: Outcome) -> None:
        """Count a run that was observed and gave values; ignore any other run."""
        if not run.build.observe or not isinstance(outcome, Values):
            return
        target = self.names[run.target]
        names = sorted(outcome.observations.passes)
        self.counts[Key("programs", target)] += 1
        self.counts.update(Key("fired", target, name) for name in names)
        self.counts.update(Key("together", target, *pair) for pair in combinations(names, 2))
        for name in recipe.get("wakes", ()):
            self.counts[Key("tried", target, name)] += 1
            self.counts[Key("woken", target, name)] += name in names or self.frames.get(name, name) in names

    def take(self) -> list[tuple[str, str, str, str, int]]:
        """Return the counts as rows and set all counts to zero."""
        rows = [(*key, count) for key, count in self.counts.items()]
        self.counts.clear()
        return rows

    def add(self, rows: Iterable[Iterable[Any]]) -> None:
        """Add rows that `take` gave."""
        for *key, count in rows:
            self.counts[Key(*key)] += count
