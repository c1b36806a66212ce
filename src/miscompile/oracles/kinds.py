"""Oracle kinds: the named factories that make the oracles of campaigns and of findings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from miscompile.base.specs import print_spec
from miscompile.core.ports import Oracle, PropertyOracle
from miscompile.core.verdict import Evidence
from miscompile.oracles.judge import CompareRule
from miscompile.targets.registry import narrowing


@dataclass(frozen=True, slots=True)
class NoOptions:
    """The options of an oracle that has none."""


@dataclass(frozen=True, slots=True)
class RuleOption:
    """The option of an oracle that compares the values of two builds; None stands for the campaign's rule."""

    rule: CompareRule | None = None


@dataclass(frozen=True, slots=True)
class OracleContext:
    """The facts of a campaign that oracles use: its `targets` (specs, the one under test first), the comparison `rule`,
    and the `disabled` passes, by target."""

    targets: tuple[str, ...]
    rule: CompareRule = "strict"
    disabled: Mapping[str, frozenset[str]] | None = None

    @property
    def target(self) -> str:
        """The target under test."""
        return self.targets[0]

    def narrowed(self, *targets: str) -> Mapping[str, str]:
        """Return the types that some of `targets` (default: all) compute in a narrower type, with that type."""
        return narrowing(targets or self.targets)

    def off(self, target: str) -> frozenset[str]:
        """Return the passes of `target` that stay off."""
        return (self.disabled or {}).get(target, frozenset())


@dataclass(frozen=True, slots=True)
class OracleKind:
    """A named factory of oracles.

    `options` is a frozen dataclass whose fields are the parameters that a spec can set. `make` returns the oracle of a
    campaign that asks for it by name (`--check NAME`); it is None for an oracle that the campaign's options imply.
    `hold` returns the oracle of the property that `evidence` violates; its last argument is the facts of a stored
    finding (empty for a new violation). `help` is a line for people.
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
    """Return the narrower types of the targets that `evidence` compares."""
    runs = (evidence.faulty, *((evidence.reference,) if evidence.reference else ()))
    return context.narrowed(*dict.fromkeys(run.target for run in runs))
