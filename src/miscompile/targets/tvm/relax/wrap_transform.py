"""The transform that TVM's adapter applies by itself, in Relax: runs of bindings as functions."""

from dataclasses import dataclass
from typing import Literal

from miscompile.base.errors import SpecError
from miscompile.base.specs import Spec, parse_options

WRAP = "relax"
"""The transform's name in `Build.transform`."""


@dataclass(frozen=True, slots=True)
class Relax:
    """Options of `functions.wrap`, where they are described; prints and parses as `relax{seed=3, rewrite=closure}`."""

    seed: int = 0
    count: int = 2
    depth: int = 2
    rewrite: Literal["none", "forward", "closure", "factory", "any"] = "any"

    def __post_init__(self) -> None:
        """Raise SpecError for options that leave nothing to wrap."""
        if self.count < 1 or self.depth < 1:
            raise SpecError("count and depth must be at least 1")


def relax_options(transform: Spec | None) -> Relax | None:
    """Return the options of a transform `relax{...}`, None for any other.

    Raises SpecError for unknown options.
    """
    if transform is None or transform.name != WRAP:
        return None
    return parse_options(Relax, dict(transform.options), WRAP)
