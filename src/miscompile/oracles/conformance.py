"""The conformance kit for oracles: the author of an oracle calls `check_oracle` in a test."""

import random
from collections.abc import Iterator, Sequence

from miscompile.core.case import Case
from miscompile.core.examination import examine
from miscompile.core.ports import Oracle, PropertyOracle, Runner
from miscompile.core.run import Build
from miscompile.core.verdict import Evidence, Violated
from miscompile.oracles.kinds import OracleContext, OracleKind


def check_oracle(
    kind: OracleKind, sound: Runner, faulty: Runner, cases: Sequence[Case], context: OracleContext
) -> None:
    """Check that an oracle keeps its contract.

    On the runner `sound` no case may be violated, on `faulty` every case must be. Raises AssertionError that lists
    every broken promise.
    """
    if kind.make is None:
        raise AssertionError(f"the oracle '{kind.name}' makes no oracle for campaigns (`make` is None)")
    oracle = kind.make(kind.options(), context)
    found = [line for case in cases for line in _violations(kind, oracle, sound, faulty, case, context)]
    if found:
        raise AssertionError(
            f"the oracle '{kind.name}' breaks its contract:\n" + "\n".join(f"- {one}" for one in found)
        )


def _violations(
    kind: OracleKind, oracle: Oracle, sound: Runner, faulty: Runner, case: Case, context: OracleContext
) -> Iterator[str]:
    name = case.program.digest
    plans = [oracle.plan(case, random.Random(1)) for _ in range(2)]
    if plans[0] != plans[1]:
        yield f"{name}: the same random stream gives two plans"
    if not plans[0] or any(run.case.program != case.program for run in plans[0][:1]):
        yield f"{name}: a plan begins with a run of the case"
    if isinstance(verdict := examine(case, oracle, sound, random.Random(1)).verdict, Violated):
        yield f"{name}: a sound compiler violates it: {verdict.evidence.message}"
    seen = examine(case, oracle, faulty, random.Random(1)).verdict
    if not isinstance(seen, Violated):
        yield f"{name}: the fault is not seen: {seen}"
        return
    held = kind.hold(kind.options(), seen.evidence, context, {})
    yield from _property_violations(name, held, seen.evidence, sound, faulty, case)


def _property_violations(
    name: str, held: PropertyOracle, evidence: Evidence, sound: Runner, faulty: Runner, case: Case
) -> Iterator[str]:
    """Yield what is wrong with the oracle of the finding, which reduction and bisection ask."""
    if (held.target, held.faulty) != (evidence.faulty.target, evidence.faulty.build):
        yield f"{name}: the property is about another build than the evidence"
    again = examine(case, held, faulty, random.Random(2)).verdict
    if not isinstance(again, Violated) or again.evidence.kind != evidence.kind:
        yield f"{name}: the property of the violation is not violated by its own case: {again}"
    if isinstance(examine(case, held, sound, random.Random(2)).verdict, Violated):
        yield f"{name}: the property is violated on a sound compiler"
    other = held.with_faulty(Build("off", frozenset({"a pass"})))
    planned = [run.build for run in other.plan(case, random.Random(3))]
    if other.faulty != Build("off", frozenset({"a pass"})) or other.faulty not in planned:
        yield f"{name}: with_faulty does not plan the build that it is given"
