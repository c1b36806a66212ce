"""A session of migration: each front end gets its tests in order, and what differs from the library is stored.

Tests are taken in small batches: the library runs those that it has not run yet, the front end runs those that the
library gave something to hold against. A failure is attributed to a conversion function; the first of each becomes a
pending finding at once, and is confirmed by its script when the tests of all front ends have ended.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TypeVar

from miscompile.core.events import Event, Found, Notice, Progress
from miscompile.core.finding import Finding, Property, Signature
from miscompile.core.outcome import Outcome, Raised, TimedOut, Values, is_death
from miscompile.core.ports import Listener
from miscompile.core.run import Build, Run
from miscompile.core.verdict import Evidence
from miscompile.environments.resolve import versions_of
from miscompile.execution.parallel import ParallelRunner
from miscompile.execution.pool import LocalPool
from miscompile.findings.encode import evidence_facts
from miscompile.findings.folder import Stored, identify
from miscompile.findings.store import Campaign, Store
from miscompile.instances.code import decoded, digest_of, encoded
from miscompile.instances.instance import Instance
from miscompile.migration.answers import Answers
from miscompile.migration.confirming import Confirming
from miscompile.migration.plan import MigrationPlan
from miscompile.migration.results import Appender, Row, appending, place_of, read_rows
from miscompile.oracles.library_judge import Judgement, judge
from miscompile.oracles.library_reference import Dropped, Reference, assess, reference_case, with_outputs
from miscompile.producers.instances.migrated import Migrated, migrate
from miscompile.targets.about import About
from miscompile.targets.front_ends import CONVERTERS, FrontEnd
from miscompile.targets.registry import parse_target
from miscompile.triage.converters import converter_of

T = TypeVar("T")

BATCH = 16
ASKED = 4
"""Tests that the library is asked about at once."""
RULE = "library"
"""The rule of evidence of a front end that disagrees with the library."""


class Session:
    """One run of `miscompile migrate` over `tests`, the instances of each front end in the order in which they go.

    `plan.out`, which `begin` has made, holds a store of findings, and beside it the results, a file for each front end.
    """

    def __init__(
        self, plan: MigrationPlan, tests: Mapping[str, Sequence[Instance]], listeners: Sequence[Listener]
    ) -> None:
        self._plan, self._tests, self._listeners = plan, tests, listeners
        self._waiting: dict[str, tuple[str, dict[str, Instance]]] = {}
        self._answers = Answers()
        self._counters: Counter[str] = Counter()
        self._begun = time.monotonic()

    def run(self) -> None:
        """Run everything. Raises UsageError when a front end cannot be loaded, KeyboardInterrupt after a clean stop."""
        plan = self._plan
        with Store.open(plan.out) as store:
            number = store.begin_session(time.time())
            ending = "interrupted"
            try:
                for front in plan.fronts:
                    self._await(front)
                for front in plan.fronts:
                    self._run_front(front, store)
                self._confirm(store)
                ending = "done"
            finally:
                store.add_counters(self._counters)
                store.note_session(number, time.monotonic() - self._begun, ending)

    def _await(self, front: FrontEnd) -> None:
        """Find out which tests a front end is still to run, and note that it will need the library's answers."""
        done = {row.digest for row in read_rows(place_of(self._plan.out, front.name))}
        digests = {digest_of(one): one for one in self._tests[front.name]}
        waiting = {digest: one for digest, one in digests.items() if digest not in done}
        told = f"{front.name}: {len(waiting):,} tests" + (f", {len(done):,} are done" if done else "")
        left = None if self._plan.tests is None else max(0, self._plan.tests - len(done))
        chosen = dict(list(waiting.items())[:left])
        self._waiting[front.name] = (told, chosen)
        self._answers.expect(chosen)

    def _run_front(self, front: FrontEnd, store: Store) -> None:
        plan, place = self._plan, place_of(self._plan.out, front.name)
        told, waiting = self._waiting.pop(front.name)
        self._tell(Notice(told))
        self._answers.begin(waiting)
        deadline = None if plan.seconds is None else time.monotonic() + plan.seconds
        with ExitStack() as stack:
            rows = stack.enter_context(appending(place))
            desk = _Desk(
                plan,
                front,
                stack.enter_context(LocalPool(front.reference, 1, plan.limits)),
                stack.enter_context(LocalPool(front.target, plan.workers, plan.limits)),
                store,
            )
            for batch in _batches(list(waiting.values())):
                if deadline is not None and time.monotonic() > deadline:
                    break
                self._run_batch(desk, batch, rows)
            self._counters["deaths"] += desk.pool.counters.deaths
        self._answers.end()

    def _run_batch(self, desk: "_Desk", batch: Sequence[Instance], rows: Appender) -> None:
        tests = [(one, migrate(one, constants=self._plan.constants)) for one in batch]
        answers = self._ask_library(desk, [test for _, test in tests if test is not None])
        known = [(test, answers[test.digest]) for _, test in tests if test is not None]
        ready = [(test, found) for test, found in known if isinstance(found, Reference)]
        outcomes = ParallelRunner(desk.pool, 2).run([desk.run_of(test, found) for test, found in ready])
        made = [_dropped(desk, instance, test, answers) for instance, test in tests]
        ended = [
            desk.conclude(*one, outcome, self._counters["tests"] + place)
            for place, (one, outcome) in enumerate(zip(ready, outcomes, strict=True), 1)
        ]
        rows.add([row for row in made if row is not None] + [row for row, _ in ended])
        for row, fresh in ended:
            self._counters["tests"] += 1
            self._counters["unsupported"] += row.status == "unsupported"
            self._counters["timeouts"] += row.kind == "hang"
            if fresh is not None:
                self._tell(Notice(f"{desk.front.name}: {row.api}: {row.message[:160]} ({row.converter})"))
        self._counters["dropped"] += len(tests) - len(ended)
        self._tell(Progress(time.monotonic() - self._begun, dict(self._counters)))

    def _ask_library(self, desk: "_Desk", tests: Sequence[Migrated]) -> dict[str, Reference | Dropped]:
        """Return what the library says of each test, by digest; of a few at a time, since it answers at length."""
        known = {test.digest: self._answers.take(test.digest) for test in tests}
        new = [test for test in tests if known[test.digest] is None]
        found = {digest: answer for digest, answer in known.items() if answer is not None}
        for few in _batches(new, ASKED):
            runs = [Run(reference_case(test.case), desk.front.reference, Build("off"), "judge") for test in few]
            for test, outcome in zip(few, ParallelRunner(desk.library, 4).run(runs), strict=True):
                found[test.digest] = assess(test.instance, test.case, outcome)
                self._answers.keep(test.digest, found[test.digest])
        return found

    def _confirm(self, store: Store) -> None:
        until = time.monotonic() + self._plan.patience
        with Confirming(self._plan) as confirming:
            for record in store.pending():
                if time.monotonic() > until:
                    self._tell(Notice("confirming has taken long enough; --resume goes on with the findings left"))
                    return
                first = store.load(record.identifier)
                stored = self._confirmed(confirming, first)
                if stored.finding.identifier != record.identifier:
                    store.update(replace(first, status="unconfirmed"))
                fresh = store.update(stored)
                if stored.status in ("confirmed", "known"):
                    self._tell(Found(stored.finding, fresh and stored.status == "confirmed"))
                self._tell(Progress(time.monotonic() - self._begun, dict(self._counters)))

    def _confirmed(self, confirming: Confirming, first: Stored) -> Stored:
        """Return the first test of a conversion function whose failure is confirmed, else what came of `first`.

        What one test shows may be chance or our own fault; the others that failed alike may still be right.
        """
        examined = confirming.examine(first)
        if examined.status != "unconfirmed":
            return examined
        for other in self._others(first):
            stored = confirming.examine(other)
            if stored.status != "unconfirmed":
                return stored
        return examined

    def _others(self, first: Stored) -> Iterator[Stored]:
        """Yield findings like `first` of other tests with the same bug, up to the plan's number of tries."""
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
                identifier = identify(held.signature.kind, held.target, test.case)
                known = {**facts, "instance": encoded(test.instance).decode(), "operator": test.operator}
                finding = replace(first.finding, identifier=identifier, case=test.case, facts=known)
                yield replace(first, finding=finding)

    def _tell(self, event: Event) -> None:
        for listener in self._listeners:
            listener.on(event)


def begin(plan: MigrationPlan) -> None:
    """Make the plan's folder that of a migration, unless it is already, so that it can be resumed from now on.

    Raises StoreError when it cannot be written, UsageError when something that takes part is not installed.
    """
    with Store.open(plan.out) as store:
        if store.campaign() is None:
            store.begin(Campaign(plan.title, plan.seed, plan.remembered(), _versions(plan), time.time()))


class _Desk:
    """One front end with its pools: builds runs, and turns outcomes into rows and findings."""

    def __init__(self, plan: MigrationPlan, front: FrontEnd, library: LocalPool, pool: LocalPool, store: Store) -> None:
        self.front, self.library, self.pool = front, library, pool
        self._plan, self._store = plan, store
        self._about: About = parse_target(front.target).about
        spec = parse_target(front.target)
        self._converters = spec.front.converters if spec.front is not None else CONVERTERS.get(self._about.name, "")
        self._versions = versions_of(front.target)

    def run_of(self, test: Migrated, reference: Reference) -> Run:
        """Return the run of a test on the front end."""
        return Run(with_outputs(test.case, reference), self.front.target, Build(self._plan.level))

    def conclude(
        self, test: Migrated, reference: Reference, outcome: Outcome, number: int
    ) -> tuple[Row, Stored | None]:
        """Judge an outcome and store a finding that is the first of its kind; return the test's row, and that.

        `number` counts the tests of this session.
        """
        found = judge(reference, outcome, self._plan.compare, self._about.narrowed)
        seconds = outcome.observations.compile_seconds + outcome.observations.run_seconds
        row = Row(
            test.digest, test.instance.api, self.front.name, found.status, message=found.message,
            seconds=round(seconds, 4), distance=found.distance,
        )  # fmt: skip
        if found.status != "finding" or found.kind is None:
            return row, None
        run = self.run_of(test, reference)
        converter = converter_of(test.instance, outcome, self._converters, self._seen(run, outcome))
        signature = Signature(self.front.target, found.kind, _stage(outcome), (converter,), "")
        row = replace(row, bug=str(signature), converter=converter, kind=found.kind)
        stored = self._stored(test, run, found, outcome, signature, self._store.counters().get("tests", 0) + number)
        return row, stored if self._store.add_pending(stored) else None

    def _seen(self, run: Run, outcome: Outcome) -> tuple[str, ...]:
        """Return the conversion functions that ran, by building once more under observation; not after a death."""
        if is_death(outcome) or isinstance(outcome, TimedOut) or self.front.library == "onnx":
            return ()  # what a compiler of ONNX says of a build is its optimisations
        again = self.pool.run([replace(run, build=replace(run.build, observe=True), purpose="bisect")])[0]
        return again.observations.passes if isinstance(again, Values | Raised) else ()

    def _stored(
        self, test: Migrated, run: Run, found: Judgement, outcome: Outcome, signature: Signature, number: int
    ) -> Stored:
        assert found.kind is not None
        details = {"output": found.output, "feed": 0, "distance": _finite(found.distance), "allowed": found.allowed}
        against = Run(run.case, self.front.reference, Build("off"))
        output, message = run.case.program.outputs[found.output].name, " ".join(found.message.split())
        evidence = Evidence(found.kind, RULE, message, run, against, output, details)
        facts = {
            **evidence_facts(evidence),
            "test": number,
            "nodes": 1,
            "instance": encoded(test.instance).decode(),
            "operator": test.operator,
            "front": self.front.name,
            "constants": self._plan.constants,
        }
        identifier = identify(found.kind, self.front.target, run.case)
        finding = Finding(
            identifier, Property("migration", self.front.target, signature), run.case, evidence.message, facts
        )
        return Stored(finding, versions=self._versions)


def _stage(outcome: Outcome) -> str:
    return str(getattr(outcome, "stage", ""))


def _finite(distance: float | None) -> float | str | None:
    return distance if distance is None or distance < float("inf") else str(distance)


def _dropped(
    desk: _Desk, instance: Instance, test: Migrated | None, answers: Mapping[str, Reference | Dropped]
) -> Row | None:
    """Return the row of a test that is not run on the front end; None for one that is."""
    found = Dropped("invalid") if test is None else answers[test.digest]
    if isinstance(found, Reference):
        return None
    return Row(digest_of(instance), instance.api, desk.front.name, found.reason, message=found.detail)


def _batches(items: Sequence[T], size: int = BATCH) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _versions(plan: MigrationPlan) -> dict[str, str]:
    """Return the versions of all that takes part. Raises UsageError when something is not installed."""
    found: dict[str, str] = {}
    for target in (name for front in plan.fronts for name in (front.target, front.reference)):
        found |= versions_of(target)
    return found
