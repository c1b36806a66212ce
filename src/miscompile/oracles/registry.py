"""Oracles by name: the built-in ones, and those of installed packages (entry points `miscompile.oracles`).

A finding names its oracle with parameters, as in `library{library=torch}`. The kind that bears the name makes the
oracle of a campaign, and the oracle of a single finding's property, which reduction and bisection check.
"""

from collections.abc import Mapping
from typing import Any

from miscompile.base.plugins import Catalogue
from miscompile.base.specs import parse_options, parse_spec
from miscompile.core.ports import PropertyOracle
from miscompile.core.verdict import Evidence
from miscompile.oracles.kinds import OracleContext, OracleKind, RuleOption

_PACKAGE = "miscompile.oracles"

ORACLES = Catalogue(
    "oracle",
    "miscompile.oracles",
    OracleKind,
    {
        "optimisation": f"{_PACKAGE}.optimisation:KIND",
        "differential": f"{_PACKAGE}.differential:KIND",
        "dynamic": f"{_PACKAGE}.dynamic:KIND",
        "disruptive": f"{_PACKAGE}.disruptive:KIND",
        "library": f"{_PACKAGE}.library:KIND",
    },
)
"""Each is a module's `OracleKind`, imported when a finding or a campaign names it."""

_FORMER = {"migration": "library"}
"""Names in findings of earlier versions."""


def oracle_kind(name: str) -> OracleKind:
    """Return the kind of oracle called `name`. Raises SpecError for an unknown one, UsageError for a broken one."""
    return ORACLES.get(_FORMER.get(name, name))


def campaign_oracles() -> dict[str, OracleKind]:
    """Return the oracles that a campaign can ask for by name (`--check NAME`). Raises UsageError for a broken one."""
    kinds = {name: ORACLES.get(name) for name in ORACLES.usable()}
    return {name: kind for name, kind in kinds.items() if kind.make is not None}


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
