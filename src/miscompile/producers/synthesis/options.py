"""The options of synthesis, one frozen value that prints and parses as a spec, and the patterns that they select."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from miscompile.base.errors import SpecError, UsageError
from miscompile.patterns.library import read_library
from miscompile.patterns.pattern import Pattern
from miscompile.patterns.shipped import shipped_patterns
from miscompile.producers.options import OPSETS

Contexts = Literal["generated", "patterns", "none"]
"""Source of the seeds. generated: strict generation without motifs; patterns: the patterns themselves, as in the tests
that they come from; none: no seed, the pattern is the whole program.
"""


@dataclass(frozen=True, slots=True)
class OatestOptions:
    """The options of synthesis.

    `patterns` is a file of patterns to use besides those that ship with the tool, `shipped` whether these are used;
    `seeds` selects their source (slices of the user's models, if any, are added), `nodes` is the number of operators of
    a generated one, `pool` the capacity of the pool, `most` the greatest number of operators of a result that becomes a
    seed. `high_order` makes clean results seeds again; `steer` prefers passes and combinations of passes that were
    observed less often. `mutations` is the share of patterns that are planted in an uncommon setting, `calls` the share
    that become a called function, `observe` the share of programs whose passes are observed. The others are as for
    strict generation.
    """

    patterns: str = ""
    shipped: bool = True
    seeds: Contexts = "generated"
    nodes: int = 10
    pool: int = 400
    most: int = 60
    high_order: bool = True
    steer: bool = True
    mutations: float = 0.3
    calls: float = 0.08
    observe: float = 0.25
    ops: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    opsets: tuple[int, ...] = OPSETS
    max_rank: int = 5
    max_dim: int = 8
    max_elements: int = 1024
    integral: float = 0.45
    full: float = 0.5
    control: float = 0.01
    feeds: int = 1
    variants: int = 2
    share: float = 1.0

    def __post_init__(self) -> None:
        """Raise SpecError for values that leave nothing to synthesise."""
        if min(self.nodes, self.pool, self.variants, self.feeds, self.max_dim, self.max_elements) < 1:
            raise SpecError("nodes, pool, variants, feeds, max_dim and max_elements must be at least 1")
        if self.max_rank < 0 or self.share <= 0:
            raise SpecError("max_rank must not be negative, and share must be more than 0")
        if not (self.shipped or self.patterns):
            raise SpecError("without the shipped patterns, a file of patterns is needed (patterns=FILE)")
        chances = (self.mutations, self.calls, self.observe, self.integral, self.full, self.control)
        if not all(0 <= chance <= 1 for chance in chances):
            raise SpecError("mutations, calls, observe, integral, full and control are numbers from 0 to 1")


def patterns_for(options: OatestOptions) -> tuple[Pattern, ...]:
    """Return the patterns to use. Raises UsageError when the user's library cannot be read or holds none."""
    own: tuple[Pattern, ...] = ()
    if options.patterns:
        path = Path(options.patterns)
        if not path.is_file():
            raise UsageError(f"there is no file of patterns at {path}; `miscompile harvest` makes one")
        own = read_library(path)
        if not own:
            raise UsageError(f"{path} holds no patterns")
    return (*(shipped_patterns() if options.shipped else ()), *own)
