"""A session of migration: each front end gets its tests in order, and violations of the library oracle are stored.

The session examines tests in small batches. A failure is attributed to a conversion function. The first failure of each
function becomes a pending finding at once, and is triaged when the tests of all front ends have ended.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from miscompile.base.wording import counted
from miscompile.core.events import UNDECIDED, Event, Found, Notice, Progress, Suspected, WorkPhase
from miscompile.core.ports import Listener
from miscompile.engine.known_bugs import KnownBugs, name_in_ledger, release_under_test
from miscompile.environments.resolve import versions_of
from miscompile.execution.multi_target import MultiTargetPool
from miscompile.execution.pool import LocalPool
from miscompile.findings import folder
from miscompile.findings.folder import REPEATED, Stored
from miscompile.findings.ledger import Ledger
from miscompile.findings.store import Campaign, Store, record_of
from miscompile.instances.code import decoded, digest_of
from miscompile.instances.instance import Instance
from miscompile.migration.answers import LibraryCache
from miscompile.migration.front_end_tests import FrontEndTests, instance_facts
from miscompile.migration.plan import MigrationPlan
from miscompile.migration.results import Appender, appending, place_of, read_rows
from miscompile.producers.instances.migrated import migrate
from miscompile.targets.front_ends import FrontEnd
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
            tests = FrontEndTests(plan, front, pool, self._cache, store)
            left, size = list(waiting.items()), BATCH if deadline is None else plan.workers
            while left and (deadline is None or time.monotonic() < deadline):
                begun = time.monotonic()
                self._run_batch(tests, left[:size], rows)
                left = left[size:]
                if deadline is not None:  # tests that take long go in smaller batches, so that the limit holds
                    size = _fitting(size, time.monotonic() - begun)
            self._counters["deaths"] += pool.counters.deaths
        self._cache.end()

    def _run_batch(self, tests: FrontEndTests, batch: Sequence[tuple[str, Instance]], rows: Appender) -> None:
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
                known = {**facts, **instance_facts(test)}
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


def _versions(plan: MigrationPlan) -> dict[str, str]:
    """Return the versions of all that takes part. Raises UsageError when something is not installed."""
    found: dict[str, str] = {}
    for target in (name for front in plan.fronts for name in (front.target, front.reference)):
        found |= versions_of(target)
    return found


def _fitting(size: int, took: float) -> int:
    """Return the size of the next batch after one of `size` tests took so many seconds."""
    return max(1, min(BATCH, int(size * _BATCH_SECONDS / max(took, 1e-3))))
