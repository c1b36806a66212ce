"""A session of migration: each front end gets its tests in order, and violations of the library oracle are stored.

The session examines tests in small batches. A failure is attributed to a conversion function. The first failure of each
function becomes a pending finding at once, and is triaged when the tests of all front ends have ended.
"""

import random
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from miscompile.base.wording import counted
from miscompile.core.events import UNDECIDED, Event, Found, Notice, Progress, Suspected, WorkPhase
from miscompile.core.examination import Examination, examine_all
from miscompile.core.finding import Signature
from miscompile.core.outcome import Outcome, Raised, TimedOut, Values, is_death
from miscompile.core.ports import Listener
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence, Holds, Inconclusive, Needs, Violated
from miscompile.engine.known_bugs import KnownBugs, name_in_ledger, release_under_test
from miscompile.environments.resolve import versions_of
from miscompile.execution.multi_target import MultiTargetPool
from miscompile.execution.pool import LocalPool
from miscompile.execution.runners import ParallelRunner
from miscompile.findings import folder
from miscompile.findings.folder import REPEATED, Stored
from miscompile.findings.ledger import Ledger
from miscompile.findings.store import Campaign, Store, record_of
from miscompile.instances.code import decoded, digest_of, encoded, parent_json
from miscompile.instances.instance import Instance
from miscompile.instances.values import Drawn, Held, leaves
from miscompile.migration.answers import LibraryCache, LibraryRunner
from miscompile.migration.plan import MigrationPlan
from miscompile.migration.results import Appender, ResultRow, appending, place_of, read_rows
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
from miscompile.triage.queue import TriageQueue
from miscompile.triage.settings import TriageSettings

BATCH = 16
_BATCH_SECONDS = 2.0
"""Seconds that a batch should take at most when the time is limited."""
_TURN = 0.05


class MigrationSession:
    """One run of `miscompile migrate` over `tests`, the instances of each front end in their order.

    `plan.out`, which `begin` has made, holds a store of findings and a file of results for each front end.
    """

    def __init__(
        self, plan: MigrationPlan, tests: Mapping[str, Sequence[Instance]], listeners: Sequence[Listener]
    ) -> None:
        self._plan, self._tests, self._listeners = plan, tests, listeners
        self._waiting: dict[str, tuple[str, dict[str, Instance]]] = {}
        self._cache = LibraryCache()
        self._counters: Counter[str] = Counter()
        self._begun = time.monotonic()

    def run(self) -> None:
        """Run everything. Raises UsageError when a front end cannot be loaded, KeyboardInterrupt after a clean stop."""
        plan = self._plan
        with Store.open(plan.out) as store, Ledger.open(plan.ledger_file) as ledger:
            store.choose(store.number)
            known = KnownBugs(ledger, name_in_ledger(store.campaign()), _releases(plan))
            number = store.begin_session(time.time())
            ending = "interrupted"
            try:
                for front in plan.fronts:
                    self._await(front)
                for front in plan.fronts:
                    self._run_front(front, store)
                self._triage(store, known)
                ending = "done"
            finally:
                store.add_counters(self._counters)
                store.note_session(number, time.monotonic() - self._begun, ending)

    def _await(self, front: FrontEnd) -> None:
        """Determine the tests that a front end must still run, and announce them to the cache."""
        done = {row.digest for row in read_rows(place_of(self._plan.out, front.name))}
        digests = {digest_of(one): one for one in self._tests[front.name]}
        waiting = {digest: one for digest, one in digests.items() if digest not in done}
        told = f"{front.name}: {counted(len(waiting), 'test')}" + (f", {len(done):,} are done" if done else "")
        left = None if self._plan.tests is None else max(0, self._plan.tests - len(done))
        chosen = dict(list(waiting.items())[:left])
        self._waiting[front.name] = (told, chosen)
        self._cache.expect(chosen)

    def _run_front(self, front: FrontEnd, store: Store) -> None:
        plan, place = self._plan, place_of(self._plan.out, front.name)
        told, waiting = self._waiting.pop(front.name)
        self._tell(Notice(told))
        self._cache.begin(waiting)
        deadline = None if plan.seconds is None else time.monotonic() + plan.seconds
        with ExitStack() as stack:
            rows = stack.enter_context(appending(place))
            workers = {front.reference: 1, front.target: plan.workers}
            pool = stack.enter_context(
                MultiTargetPool(tuple(workers), lambda target: LocalPool(target, workers[target], plan.limits))
            )
            tests = _FrontEndTests(plan, front, pool, self._cache, store)
            left, size = list(waiting.items()), BATCH if deadline is None else plan.workers
            while left and (deadline is None or time.monotonic() < deadline):
                begun = time.monotonic()
                self._run_batch(tests, left[:size], rows)
                left = left[size:]
                if deadline is not None:  # tests that take long go in smaller batches, so that the limit holds
                    size = _fitting(size, time.monotonic() - begun)
            self._counters["deaths"] += pool.counters.deaths
        self._cache.end()

    def _run_batch(self, tests: "_FrontEndTests", batch: Sequence[tuple[str, Instance]], rows: Appender) -> None:
        ended = tests.run(batch, self._counters["tests"])
        rows.add([row for row, _, _ in ended])
        for row, ran, fresh in ended:
            self._counters["dropped"] += not ran
            self._counters["tests"] += ran
            self._counters["unsupported"] += row.status == "unsupported"
            self._counters["timeouts"] += row.kind == "hang"
            if row.status == "memory":
                self._counters[f"{UNDECIDED}out of memory"] += 1
            for identifier, text in fresh:
                self._tell(Suspected(identifier, text))
        self._tell(Progress(time.monotonic() - self._begun, dict(self._counters)))

    def _triage(self, store: Store, known: KnownBugs) -> None:
        """Triage the pending findings until the plan's time limit; the rest stays pending."""
        plan, until = self._plan, time.monotonic() + self._plan.patience
        waiting = {record.identifier: self._others(store.load(record.identifier)) for record in store.pending()}
        if not waiting:
            return
        queue, total = TriageQueue(triage_settings(plan)), len(waiting)
        some, most = counted(total, "finding"), plan.patience
        self._tell(Notice(f"the tests have ended; confirming {some} for at most {most:.0f} s; Ctrl-C: later, --resume"))
        try:
            for identifier in list(waiting):
                queue.submit(identifier)
            while queue.open and queue.alive and time.monotonic() < until:
                for step in queue.steps():
                    self._tell(Notice(str(step), detail=True))
                for answer in queue.collect():
                    others = waiting.pop(answer.identifier)
                    if answer.problem:
                        self._tell(Notice(answer.problem))
                        continue
                    confirmed = self._settle(store, known, answer.identifier)
                    for name in answer.slippages:
                        slippage = store.load(name)
                        if store.register(record_of(slippage), slippage.finding.property.signature):
                            waiting[name] = iter(())
                            queue.submit(name)
                    other = None if confirmed else next(others, None)
                    if other is not None and store.add_pending(other):
                        waiting[other.finding.identifier] = others
                        queue.submit(other.finding.identifier)
                total = max(total, queue.open)
                done, remaining = total - queue.open, until - time.monotonic()
                self._tell(WorkPhase("confirming findings", done, total, remaining, queue.doing))
                time.sleep(_TURN)
            if queue.open:
                left = counted(queue.open, "finding")
                self._tell(Notice(f"{left} left, with --resume; --triage-time allows more time"))
        finally:
            queue.close()

    def _settle(self, store: Store, known: KnownBugs, identifier: str) -> bool:
        """Enter the new state that a triage worker has written in store and ledger, and inform the listeners.

        Returns False for an unconfirmed finding.
        """
        stored = store.settle(identifier)
        if stored is not None and (fresh := known.enter(stored)) != stored:
            stored = fresh if store.update(fresh) else None
        if stored is not None and stored.status in REPEATED:
            self._tell(Found(stored.finding, stored.status == "confirmed"))
        return stored is None or stored.status != "unconfirmed"

    def _others(self, first: Stored) -> Iterator[Stored]:
        """Yield findings like `first` of other tests with the same bug, up to the plan's number of tries.

        The first test of a conversion function may fail at random or through an error of this tool; other tests with
        the same failure may still be confirmed.
        """
        facts, held = first.finding.facts, first.finding.property
        front = str(facts["front"])
        tests = {digest_of(one): one for one in self._tests.get(front, ())}
        own = digest_of(decoded(str(facts["instance"])))
        alike = [
            row.digest
            for row in read_rows(place_of(self._plan.out, front))
            if row.bug == str(held.signature) and row.digest != own and row.digest in tests
        ]
        for digest in alike[: self._plan.confirm - 1]:
            test = migrate(tests[digest], constants=self._plan.constants)
            if test is not None:
                identifier = folder.identify(held.signature.kind, held.target, test.case)
                known = {**facts, **_facts(test)}
                finding = replace(first.finding, identifier=identifier, case=test.case, facts=known)
                yield replace(first, finding=finding, status="pending", original=None)

    def _tell(self, event: Event) -> None:
        for listener in self._listeners:
            listener.on(event)


def _releases(plan: MigrationPlan) -> dict[str, str]:
    return {front.target: release_under_test(front.target) for front in plan.fronts}


def triage_settings(plan: MigrationPlan) -> TriageSettings:
    """Return the settings of triage for a migration."""
    targets = tuple(dict.fromkeys(front.target for front in plan.fronts))
    seconds = max(120.0, 2 * plan.limit_seconds)
    return TriageSettings(plan.out, targets, plan.seed, plan.compare, plan.limits, None, seconds)


def begin(plan: MigrationPlan) -> None:
    """Record the migration in the plan's folder, unless it is recorded already, so that it can be resumed.

    Raises StoreError when the folder cannot be written, UsageError when a compiler or library is not installed.
    """
    with Store.open(plan.out) as store:
        if store.campaign() is None:
            store.begin(Campaign(plan.title, plan.seed, plan.remembered(), _versions(plan), time.time()))


_INVALID = "invalid"
"""The status of an instance that makes no program of its own."""


Fresh: TypeAlias = tuple[tuple[str, str], ...]
"""Findings that are the first of their signature, each with a line for people."""


TypedOperator: TypeAlias = tuple[str, int, tuple[str, ...]]
"""An operator, the operator set that it is of, and the element types of its operands."""


class _Ended(NamedTuple):
    """A test's row, whether the front end ran it, and the findings that it led to."""

    row: ResultRow
    ran: bool
    fresh: Fresh = ()


class _Refusal(NamedTuple):
    """A test that the front end refused for a reason that `known.toml` does not call lawful, and its number."""

    test: Migrated
    seen: Examination
    number: int


class _FrontEndTests:
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

    def run(self, batch: Sequence[tuple[str, Instance]], number: int) -> list[_Ended]:
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
                rows.append(_Ended(ResultRow(digest, instance.api, self.front.name, _INVALID), ran=False))
        return rows

    def _conclude(self, test: Migrated, seen: Examination, number: int) -> _Ended:
        row = ResultRow(test.digest, test.instance.api, self.front.name, "pass", seconds=_seconds(seen))
        match seen.verdict:
            case Holds(_, details):
                return _Ended(replace(row, distance=_distance(details)), ran=True, fresh=self._takes(test.instance))
            case Inconclusive(reason, detail):
                ended = replace(row, status=reason, message=detail)
                fresh = self._refusal(_Refusal(test, seen, number)) if reason == "unsupported" else ()
                return _Ended(ended, ran=len(seen.runs) > 1, fresh=fresh)
            case Violated(evidence):
                return self._violated(test, seen, evidence, row, number)
            case Needs():
                raise AssertionError("an examination never ends with Needs")

    def _violated(self, test: Migrated, seen: Examination, evidence: Evidence, row: ResultRow, number: int) -> _Ended:
        signature = self._signature(test, seen, evidence)
        (converter,) = signature.culprits
        row = replace(
            row, status="finding", message=evidence.message, bug=str(signature), converter=converter,
            kind=evidence.kind, distance=_distance(evidence.details),
        )  # fmt: skip
        return _Ended(row, ran=True, fresh=self._entered(self._oracle, signature, test, seen, evidence, number))

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
            front=self.front.name, constants=self._plan.constants, **_facts(test),
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


def _facts(test: Migrated) -> dict[str, Any]:
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


def _versions(plan: MigrationPlan) -> dict[str, str]:
    """Return the versions of all that takes part. Raises UsageError when something is not installed."""
    found: dict[str, str] = {}
    for target in (name for front in plan.fronts for name in (front.target, front.reference)):
        found |= versions_of(target)
    return found


def _fitting(size: int, took: float) -> int:
    """Return the size of the next batch after one of `size` tests took so many seconds."""
    return max(1, min(BATCH, int(size * _BATCH_SECONDS / max(took, 1e-3))))
