"""Oracles by name: those of the tree, and those that installed packages bring (entry points `miscompile.oracles`).

A finding names its oracle with parameters, as in `library{library=torch}`. The kind that bears the name makes the
oracle of a campaign, and the oracle of a single finding's property, which reduction and bisection obey.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any

from miscompile.base.errors import SpecError
from miscompile.base.specs import parse_options, parse_spec, print_spec
from miscompile.core.ports import Oracle, PropertyOracle
from miscompile.core.verdict import Evidence
from miscompile.oracles.judge import Rule
from miscompile.targets.narrowing import narrowing

GROUP = "miscompile.oracles"

_TREE = {
    "optimisation": "miscompile.oracles.optimisation",
    "differential": "miscompile.oracles.differential",
    "dynamic": "miscompile.oracles.dynamic",
    "disruptive": "miscompile.oracles.disruptive",
    "library": "miscompile.oracles.library",
}
_FORMER = {"migration": "library"}
"""Names in findings of earlier versions."""


@dataclass(frozen=True, slots=True)
class NoOptions:
    """The options of an oracle that has none."""


@dataclass(frozen=True, slots=True)
class RuleOption:
    """The option of an oracle that compares the values of two builds; None leaves the choice to the campaign."""

    rule: Rule | None = None


@dataclass(frozen=True, slots=True)
class OracleContext:
    """What a campaign tells every oracle: its `targets` (specs, the one under test first), the comparison of values,
    and the passes that stay off, by target."""

    targets: tuple[str, ...]
    rule: Rule = "strict"
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


@cache
def outside_kinds() -> Mapping[str, OracleKind]:
    """Return the oracles of installed packages. Raises SpecError for one that is broken or takes a name twice."""
    found: dict[str, OracleKind] = {}
    for point in entry_points(group=GROUP):
        if point.name in _TREE or point.name in found:
            raise SpecError(f"two oracles are called '{point.name}'; uninstall the package of {point.value}")
        try:
            kind = point.load()
        except Exception as error:  # noqa: BLE001 - whatever an outside package raises when it is imported
            raise SpecError(f"oracle '{point.name}' ({point.value}) cannot be loaded: {error}") from None
        if not isinstance(kind, OracleKind) or kind.name != point.name:
            raise SpecError(f"{point.value} is no OracleKind called '{point.name}'")
        found[point.name] = kind
    return found


def oracle_kind(name: str) -> OracleKind:
    """Return the kind of oracle called `name`. Raises SpecError for an unknown one."""
    name = _FORMER.get(name, name)
    if name in _TREE:
        kind: OracleKind = import_module(_TREE[name]).KIND
        return kind
    if name in outside_kinds():
        return outside_kinds()[name]
    raise SpecError(f"there is no oracle '{name}'; there are: {', '.join((*_TREE, *outside_kinds()))}")


def hold(
    spec: str, evidence: Evidence, context: OracleContext, facts: Mapping[str, Any] | None = None
) -> PropertyOracle:
    """Return the oracle of the property that `evidence` violates, for the oracle that `spec` names.

    Raises SpecError when it does not parse.
    """
    named = parse_spec(spec)
    kind = oracle_kind(named.name)
    return kind.hold(parse_options(kind.options, dict(named.options), spec), evidence, context, facts or {})


def property_spec(name: str, context: OracleContext) -> str:
    """Return the spec by which a finding names its oracle, with the parameters that `context` sets."""
    kind = oracle_kind(name)
    if kind.options is RuleOption and context.rule != "strict":
        return kind.spec(RuleOption(context.rule))
    return kind.spec(kind.options())


def narrowed_between(evidence: Evidence, context: OracleContext) -> Mapping[str, str]:
    """Return the narrower types of the targets that `evidence` speaks of."""
    runs = (evidence.faulty, *((evidence.reference,) if evidence.reference else ()))
    return context.narrowed(*dict.fromkeys(run.target for run in runs))
