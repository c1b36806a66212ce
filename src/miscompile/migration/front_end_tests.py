"""The tests of one front end: each one becomes a row, and the first violation of each kind a finding."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from miscompile.core.examination import Examination, examine, examine_all
from miscompile.core.finding import Signature
from miscompile.core.outcome import Outcome, Raised, TimedOut, Values, is_death
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence, Holds, Inconclusive, Needs, Violated
from miscompile.environments.resolve import versions_of
from miscompile.execution.multi_target import MultiTargetPool
from miscompile.execution.runners import ParallelRunner
from miscompile.findings.store import Store
from miscompile.instances.code import encoded, parent_json
from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn, Held, leaves
from miscompile.migration.answers import LibraryCache, LibraryRunner
from miscompile.migration.plan import MigrationPlan
from miscompile.migration.results import ResultRow
from miscompile.oracles.kinds import OracleContext
from miscompile.oracles.library import LibraryOracle
from miscompile.producers.instances.migrated import Migrated, migrate
from miscompile.targets.about import About
from miscompile.targets.front_ends import FrontEnd
from miscompile.targets.reasons import is_lawful, refusal_reason
from miscompile.targets.registry import parse_target
from miscompile.triage.attribution import to_stored
from miscompile.triage.converters import front_end_signature
from miscompile.triage.library import LibraryFinding

_INVALID = "invalid"
"""The status of an instance that makes no program of its own."""

_DIED_ONCE = "died once"
"""The status of a test that ended its worker and passed when it was repeated."""

Fresh: TypeAlias = tuple[tuple[str, str], ...]
"""Findings that are the first of their signature, each with a line for people."""

TypedOperator: TypeAlias = tuple[str, int, tuple[str, ...]]
"""An operator, the operator set that it is of, and the element types of its operands."""


class EndedTest(NamedTuple):
    """A test's row, whether the front end ran it, and the findings that it led to."""

    row: ResultRow
    ran: bool
    fresh: Fresh = ()


class _Refusal(NamedTuple):
    """A test that the front end refused for a reason that `known.toml` does not call lawful, and its number."""

    test: Migrated
    seen: Examination
    number: int


class FrontEndTests:
    """Runs the tests of one front end, and turns verdicts into rows and findings.

    The first refusal of an operator for each reason is a finding of class `refused-form`, once the front end has passed
    another test of the operator with the same version and element types, before or later in the session.
    """

    def __init__(
        self, plan: MigrationPlan, front: FrontEnd, pool: MultiTargetPool, cache: LibraryCache, store: Store
    ) -> None:
        self.front = front
        self._plan, self._pool, self._store = plan, pool, store
        self._about: About = parse_target(front.target).about
        self._versions = versions_of(front.target)
        self._context = OracleContext((front.target,), plan.compare)
        self._oracle = LibraryOracle(
            front.reference, front.target, Build(plan.level), plan.compare, self._about.narrowed
        )
        self._runner = LibraryRunner(ParallelRunner(pool, 2), front.reference, cache)
        self._taken: set[TypedOperator] = set()
        self._told: set[tuple[str, str]] = set()
        self._refused: dict[TypedOperator, dict[str, _Refusal]] = {}

    def run(self, batch: Sequence[tuple[str, Instance]], number: int) -> list[EndedTest]:
        """Examine instances (with their digests); `number` counts the tests of this session until now."""
        made = [(digest, one, migrate(one, constants=self._plan.constants)) for digest, one in batch]
        tests = [test for _, _, test in made if test is not None]
        self._runner.tests = {id(test.case.program): test.digest for test in tests}
        examined = examine_all([test.case for test in tests], self._oracle, self._runner, random.Random(0))
        seen = dict(zip([test.digest for test in tests], zip(tests, examined, strict=True), strict=True))
        rows = []
        for place, (digest, instance, _) in enumerate(made, 1):
            if digest in seen:
                rows.append(self._conclude(*seen[digest], number + place))
            else:
                rows.append(EndedTest(ResultRow(digest, instance.api, self.front.name, _INVALID), ran=False))
        return rows

    def _conclude(self, test: Migrated, seen: Examination, number: int) -> EndedTest:
        row = ResultRow(test.digest, test.instance.api, self.front.name, "pass", seconds=_seconds(seen))
        match seen.verdict:
            case Holds(_, details):
                return EndedTest(replace(row, distance=_distance(details)), ran=True, fresh=self._takes(test.instance))
            case Inconclusive(reason, detail):
                ended = replace(row, status=reason, message=detail)
                fresh = self._refusal(_Refusal(test, seen, number)) if reason == "unsupported" else ()
                return EndedTest(ended, ran=len(seen.runs) > 1, fresh=fresh)
            case Violated(evidence):
                if evidence.kind == "death":
                    seen = self._repeated(test, seen)
                if not isinstance(seen.verdict, Violated):
                    return EndedTest(replace(row, status=_DIED_ONCE, message=evidence.message), ran=True)
                return self._violated(test, seen, seen.verdict.evidence, row, number)
            case Needs():
                raise AssertionError("an examination never ends with Needs")

    def _repeated(self, test: Migrated, seen: Examination) -> Examination:
        """Examine a test that ended its worker again: with one worker, in the one that was started after it.

        A worker runs many tests, and one that writes where it must not may end the process of a later test.
        """
        again = examine(test.case, self._oracle, self._runner, random.Random(0))
        died = isinstance(again.verdict, Violated) and again.verdict.evidence.kind == "death"
        return seen if died else again

    def _violated(
        self, test: Migrated, seen: Examination, evidence: Evidence, row: ResultRow, number: int
    ) -> EndedTest:
        signature = self._signature(test, seen, evidence)
        (converter,) = signature.culprits
        row = replace(
            row, status="finding", message=evidence.message, bug=str(signature), converter=converter,
            kind=evidence.kind, distance=_distance(evidence.details),
        )  # fmt: skip
        return EndedTest(row, ran=True, fresh=self._entered(self._oracle, signature, test, seen, evidence, number))

    def _takes(self, instance: Instance) -> Fresh:
        """Take notice of a test that passed, and enter the refusals of other forms of its operator as findings."""
        typed = _typed(instance)
        self._taken.add(typed)
        late = self._refused.pop(typed, {})
        return tuple([one for reason, refusal in late.items() for one in self._form(reason, refusal)])

    def _refusal(self, refusal: _Refusal) -> Fresh:
        """Take notice of a refused test; enter it as a finding if other forms of its operator are taken."""
        reason, typed = refusal_reason(self.front.target, refusal.seen.outcomes[1]), _typed(refusal.test.instance)
        if not reason or is_lawful(self.front.target, reason):
            return ()
        if typed in self._taken:
            return self._form(reason, refusal)
        self._refused.setdefault(typed, {}).setdefault(reason, refusal)
        return ()

    def _form(self, reason: str, refusal: _Refusal) -> Fresh:
        """Enter a refused test as a finding, the first one of its operator and reason."""
        key = (refusal.test.instance.api, reason)
        if key in self._told:
            return ()
        self._told.add(key)
        held, (test, seen, number) = replace(self._oracle, refused=reason), refusal
        verdict = held.judge(seen.runs, seen.outcomes)
        assert isinstance(verdict, Violated)
        seen = replace(seen, verdict=verdict)
        return self._entered(held, self._signature(test, seen, verdict.evidence), test, seen, verdict.evidence, number)

    def _signature(self, test: Migrated, seen: Examination, evidence: Evidence) -> Signature:
        outcome, reason = seen.outcomes[1], str(evidence.details.get("reason", ""))
        converted = self._converted(evidence.faulty, outcome)
        return front_end_signature(self.front.target, evidence.kind, test.instance, outcome, converted, reason=reason)

    def _entered(
        self,
        held: LibraryOracle,
        signature: Signature,
        test: Migrated,
        seen: Examination,
        evidence: Evidence,
        number: int,
    ) -> Fresh:
        """Enter a finding, and return it if it is the first one of its signature."""
        stored = to_stored(
            evidence, signature, evidence.faulty.case, self._versions, self._context,
            test=self._store.counters().get("tests", 0) + number,
            front=self.front.name, constants=self._plan.constants, **instance_facts(test),
        )  # fmt: skip
        told = LibraryFinding(held, seen, self._pool)
        script = told.first_script(self._versions, constants=self._plan.constants)
        if not self._store.add_pending(replace(stored, script=script)):
            return ()
        return ((stored.finding.identifier, f"{signature}: {test.instance.api}: {evidence.message[:160]}"),)

    def _converted(self, run: Run, outcome: Outcome) -> tuple[str, ...]:
        """Return the conversion functions that ran, by building once more under observation; not after a death."""
        if is_death(outcome) or isinstance(outcome, TimedOut) or self.front.library == "onnx":
            return ()  # a compiler of ONNX reports its optimisations instead
        again = self._pool.run([replace(run, build=replace(run.build, observe=True), purpose="bisect")])[0]
        return again.observations.passes if isinstance(again, Values | Raised) else ()


def _typed(instance: Instance) -> TypedOperator:
    """Return the operator of an instance with its version and the element types of its tensors, each once."""
    values = [leaf for one in instance.parameters().values() for leaf in leaves(one)]
    tensors = [one.tensor if isinstance(one, Held) else one for one in values if isinstance(one, Held | Drawn)]
    return instance.api, instance.version, tuple(sorted({one.dtype for one in tensors}))


def instance_facts(test: Migrated) -> dict[str, Any]:
    """Return the facts of a finding that say which instance it is about, and which one of a test it was made from."""
    one = test.instance
    parent = parent_json(one.parent) if one.parent else None
    return {"instance": encoded(one).decode(), "operator": test.operator, "parent": parent}


def _seconds(seen: Examination) -> float:
    """Return the wall-clock seconds inside the compiler; 0 where the library alone has run."""
    if len(seen.outcomes) < 2:
        return 0.0
    spent = seen.outcomes[1].observations
    return round(spent.compile_seconds + spent.run_seconds, 4)


def _distance(details: Mapping[str, Any]) -> float | None:
    return None if "distance" not in details else float(details["distance"])
