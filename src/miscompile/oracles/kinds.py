"""An oracle as the rest of the tool meets it: a kind with a name, which makes oracles of campaigns and of findings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from miscompile.base.specs import print_spec
from miscompile.core.ports import Oracle, PropertyOracle
from miscompile.core.verdict import Evidence
from miscompile.oracles.judge import CompareRule
from miscompile.targets.narrowing import narrowing


@dataclass(frozen=True, slots=True)
class NoOptions:
    """The options of an oracle that has none."""


@dataclass(frozen=True, slots=True)
class RuleOption:
    """The option of an oracle that compares the values of two builds; None leaves the choice to the campaign."""

    rule: CompareRule | None = None


@dataclass(frozen=True, slots=True)
class OracleContext:
    """What a campaign tells every oracle: its `targets` (specs, the one under test first), the comparison of values,
    and the passes that stay off, by target."""

    targets: tuple[str, ...]
    rule: CompareRule = "strict"
    disabled: Mapping[str, frozenset[str]] | None = None

    @property
    def target(self) -> str:
        """The target under test."""
        return self.targets[0]

    def narrowed(self, *targets: str) -> Mapping[str, str]:
        """Return which types some of `targets` (all of them without an argument) compute in a narrower one."""
        return narrowing(targets or self.targets)

    def off(self, target: str) -> frozenset[str]:
        """Return the passes of `target` that stay off."""
        return (self.disabled or {}).get(target, frozenset())


@dataclass(frozen=True, slots=True)
class OracleKind:
    """An oracle as the rest of the tool meets it.

    `options` is a frozen dataclass whose fields are the parameters that a spec can set. `make` returns the oracle of a
    campaign that asks for it by name (`--check NAME`); None for an oracle that campaigns get by other ways. `hold`
    returns the oracle of the property that `evidence` violates; its last argument holds what a stored finding knows
    besides (empty for a new violation). `help` is a line for people.
    """

    name: str
    help: str
    hold: Callable[[Any, Evidence, OracleContext, Mapping[str, Any]], PropertyOracle]
    make: Callable[[Any, OracleContext], Oracle] | None = None
    options: type[Any] = NoOptions

    def spec(self, options: object) -> str:
        """Print the name with the options that differ from their defaults."""
        return print_spec(self.name, options)


def narrowed_between(evidence: Evidence, context: OracleContext) -> Mapping[str, str]:
    """Return the narrower types of the targets that `evidence` speaks of."""
    runs = (evidence.faulty, *((evidence.reference,) if evidence.reference else ()))
    return context.narrowed(*dict.fromkeys(run.target for run in runs))
