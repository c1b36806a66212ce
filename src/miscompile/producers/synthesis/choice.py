"""Choice of the next pattern: uniform, or steered to passes that were observed least often."""

import random
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from miscompile.patterns.pattern import Pattern

_STEERED = 0.6
"""Share of the choices that draw a pass first."""

_PATIENCE = 25
"""Failed placements in a row after which a pattern is dropped, because the target supports none of its forms."""


@dataclass(slots=True)
class Chooser:
    """Draws patterns; `by_pass` holds those that are known to trigger a pass of one of `targets`."""

    patterns: list[Pattern]
    targets: Collection[str]
    steer: bool = True
    failures: Counter[str] = field(default_factory=Counter)
    by_pass: dict[str, list[Pattern]] = field(init=False)

    def __post_init__(self) -> None:
        """Group the patterns by the passes they trigger."""
        found: dict[str, list[Pattern]] = defaultdict(list)
        for pattern in self.patterns:
            for name in self.intended(pattern):
                found[name].append(pattern)
        self.by_pass = dict(sorted(found.items()))

    def intended(self, pattern: Pattern) -> frozenset[str]:
        """Return the passes that a pattern is known to trigger on the targets."""
        return frozenset(name for target in self.targets for name in pattern.triggers_on(target))

    def draw(self, rng: random.Random, fired: Mapping[str, int]) -> Pattern:
        """Draw a pattern; `fired` counts how often each pass was observed."""
        if self.steer and self.by_pass and rng.random() < _STEERED:
            names = list(self.by_pass)
            weights = [1.0 / (1.0 + fired.get(name, 0)) ** 0.5 for name in names]
            return rng.choice(self.by_pass[rng.choices(names, weights)[0]])
        return rng.choice(self.patterns)

    def placed(self, pattern: Pattern) -> None:
        """Record a successful placement."""
        self.failures[pattern.name] = -_PATIENCE

    def failed(self, pattern: Pattern) -> None:
        """Record a failed placement; a pattern that never fits is dropped."""
        self.failures[pattern.name] += 1
        if self.failures[pattern.name] < _PATIENCE or len(self.patterns) == 1:
            return
        self.patterns = _without(self.patterns, pattern)
        self.by_pass = {name: left for name, some in self.by_pass.items() if (left := _without(some, pattern))}


def _without(patterns: Sequence[Pattern], pattern: Pattern) -> list[Pattern]:
    return [one for one in patterns if one is not pattern]
