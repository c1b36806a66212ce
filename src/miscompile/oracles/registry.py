"""Oracles by name: the built-in ones, and those of installed packages (entry points `miscompile.oracles`).

A finding names its oracle with parameters, as in `library{library=torch}`. The kind that bears the name makes the
oracle of a campaign, and the oracle of a single finding's property, which reduction and bisection check. A campaign
with several kinds of case has an oracle for each; the recipe of a case names the one that judges it.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from miscompile.base.plugins import Catalogue
from miscompile.base.specs import parse_options, parse_spec
from miscompile.core.case import Case
from miscompile.core.outcome import Outcome
from miscompile.core.ports import Oracle, PropertyOracle
from miscompile.core.run import Run
from miscompile.core.verdict import Evidence, Verdict
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
        "memory": f"{_PACKAGE}.memory:KIND",
        "special": f"{_PACKAGE}.special:KIND",
        "state": f"{_PACKAGE}.state:KIND",
        "votes": f"{_PACKAGE}.votes:KIND",
        "cost": f"{_PACKAGE}.cost:KIND",
        "forms": f"{_PACKAGE}.forms:KIND",
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


@dataclass(frozen=True, slots=True)
class PerCaseOracle:
    """Delegates each case to the oracle that its recipe names under `oracle`, or to the `usual` one if it names none.

    Raises KeyError for a name that is not in `special`, because a producer without its oracle is a wiring error.
    """

    usual: Oracle
    special: Mapping[str, Oracle]

    def plan(self, case: Case, rng: random.Random) -> tuple[Run, ...]:
        """Return the runs that the case's oracle plans."""
        return self._of(case).plan(case, rng)

    def judge(self, runs: Sequence[Run], outcomes: Sequence[Outcome]) -> Verdict:
        """Return the verdict of the case's oracle."""
        return self._of(runs[0].case).judge(runs, outcomes)

    def _of(self, case: Case) -> Oracle:
        name = case.recipe.get("oracle")
        return self.usual if name is None else self.special[name]
