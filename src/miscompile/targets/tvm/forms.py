"""The form of a program that TVM's adapter presents by itself, in Relax: runs of bindings as functions."""

from dataclasses import dataclass
from typing import Literal

from miscompile.base.errors import SpecError
from miscompile.base.specs import parse_options, split_spec

FORM = "relax"
"""The form's name in `Build.form`."""


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


def relax_form(form: str) -> Relax | None:
    """Return the options of a form `relax{...}`, None for any other form, which the adapter does not present.

    Raises SpecError for unknown options.
    """
    if form.partition("{")[0].strip() != FORM:
        return None
    name, options = split_spec(form)
    return parse_options(Relax, options, name)
