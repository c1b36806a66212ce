"""The coordinator of a campaign: starts the lanes, stores and triages their findings, and informs the listeners.

It runs no compiler and generates no programs, so that its memory stays small and it can run for weeks.
"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from miscompile.base.errors import ExecutionError, StoreError, UsageError
from miscompile.base.wording import counted
from miscompile.core.activity import PassActivity
from miscompile.core.events import (
    Event,
    Found,
    Notice,
    Progress,
    Started,
    Suspected,
    WorkPhase,
    WorkPhaseListener,
    unheard,
)
from miscompile.core.finding import Signature
from miscompile.core.ports import Listener, Producer
from miscompile.engine.devices import require_device, require_memory
from miscompile.engine.disk import LOGS, MEASURE_EVERY, shorten, size_of
from miscompile.engine.division import Division
from miscompile.engine.known_bugs import (
    KnownBugs,
    enter_findings,
    learn_variant,
    name_in_ledger,
    new_ones,
    release_under_test,
)
from miscompile.engine.lane import Orders
from miscompile.engine.look_alikes import affordable
from miscompile.engine.plan import Plan
from miscompile.engine.probe import support_of
from miscompile.engine.seeds import in_own_opset, keep_seeds, seeds_of, wants_seeds
from miscompile.engine.supervisor import LaneSupervisor, Message
from miscompile.engine.unattributed import Unattributed, is_unattributed
from miscompile.engine.wiring import make_producer, most_bytes, triage_settings
from miscompile.environments.resolve import versions_of
from miscompile.execution.pool import LocalPool
from miscompile.execution.runners import ParallelRunner
from miscompile.findings.encode import signature_from
from miscompile.findings.folder import REPEATED, Stored
from miscompile.findings.ledger import Ledger
from miscompile.findings.store import Campaign, Record, Store, record_of
from miscompile.findings.tasks import TASKS, TaskLog
from miscompile.ops.support import Support
from miscompile.producers.around import Around
from miscompile.producers.combined import finite_part
from miscompile.producers.scheduled import ARM
from miscompile.producers.slices.collection import Collection
from miscompile.triage.predicate import told_apart
from miscompile.triage.queue import TriageAnswer, TriageQueue
from miscompile.triage.recognition import SignedPredicate, signed_predicates_of

_TURN = 0.1
_SAVE_EVERY = 1.0
_KEEP_EVERY = 3.0
"""Seconds between two copies of the counters outside the index, which also notice that the folder was deleted."""

_LEAST_PATIENCE, _MOST_PATIENCE, _PATIENCE_SHARE = 3.0, 10.0, 0.05
"""How long lanes get to judge their submitted cases when the time is over: a share of the time, between two bounds in
seconds. `--time` is a promise, so that a slow compiler's last cases are dropped."""

_LEAST_TESTING = 0.5
"""The share of the time that is left for tests at least, so that a short campaign on a new compiler tests something:
probing stops for it, and slices that took longer to cut do not use it up."""


@dataclass(frozen=True, slots=True)
class Portion:
    """The part of a campaign on several machines that one coordinator runs: the lanes of one shard.

    They are the `plan.workers` lanes from number `first` of the campaign's `session`; `plan.tests` are divided among
    all its `lanes`. So a lane makes the same tests on any machine. `steered` are the bugs that are known from the
    start (None: those of the store and the ledger, which are recognised even if the plan steers no test past them).
    """

    session: int
    first: int
    lanes: int
    steered: tuple[SignedPredicate, ...] | None = ()


def fuzz(plan: Plan, listeners: Sequence[Listener], portion: Portion | None = None) -> None:
    """Run a campaign, or its `portion`, until its limits are reached; its findings are in `plan.out` afterwards.

    KeyboardInterrupt stops it cleanly and is raised again. Findings that were not triaged stay pending, and a resumed
    campaign triages them. Raises UsageError for a target or options that cannot work.
    """
    begun = time.monotonic()
    plan, found = plan_to_run(plan)
    require_device(plan)
    require_memory(plan)
    supports = [Support(open=True)] * len(plan.targets)
    if plan.model:
        _tell(listeners, WorkPhase(f"reading {Path(plan.model).name}"))
        _tell(listeners, Notice(f"reading {Path(plan.model).name}", detail=True))
        Around(Path(plan.model), most_bytes=most_bytes(plan))  # raises for a broken model before anything is written
    left = None if plan.seconds is None else (1 - _LEAST_TESTING) * plan.seconds - (time.monotonic() - begun)
    seeds = _cut(plan, listeners, left) if wants_seeds(plan) else None
    plan = plan if seeds is None else in_own_opset(plan, seeds)
    if plan.model and (seeds is None or not seeds.seeds):
        plan = replace(plan, slices=False)  # so that no compiler is probed for programs that are not made
    if not plan.model or plan.slices:  # before the folder is made: a target that cannot be probed leaves none behind
        limited = _with_short_probe(plan)
        supports = [probe_support(limited, target, partial(_tell, listeners)) for target in plan.targets]
    with Store.open(plan.out) as store:
        plan = replace(plan, number=begin(store, plan, found))
        if seeds is not None:
            keep_seeds(plan, seeds)
        if not plan.model or plan.slices:
            producer = make_producer(plan, *supports)  # raises for slices and supports that leave nothing to generate
            _expect_tasks(plan, producer, listeners)
        with Ledger.open(plan.ledger_file) as ledger:
            _tell(listeners, Started())
            _Coordinator(plan, store, ledger, supports, listeners, portion, begun).run()


def _expect_tasks(plan: Plan, producer: Producer, listeners: Sequence[Listener]) -> None:
    """Note the number of tasks of a campaign that has a list of them, and tell how many are left."""
    finite, log = finite_part(producer), TaskLog(plan.own / TASKS)
    if finite is not None:
        log.expect(finite.tasks)
        left, total = len(log.left(finite.tasks)), counted(len(finite.tasks), "task")
        _tell(listeners, Notice(f"{left:,} of {total} are left, and the campaign ends after the last one"))


def plan_to_run(plan: Plan) -> tuple[Plan, dict[str, str]]:
    """Return the plan with all that determines its programs, and the versions of its targets' distributions.

    A resumed campaign must generate the same programs in any working directory. Raises UsageError.
    """
    plan = replace(plan, transforms=plan.chosen_transforms)
    if plan.patterns:
        plan = replace(plan, patterns=str(Path(plan.patterns).absolute()))
    if plan.ledger:
        plan = replace(plan, ledger=str(Path(plan.ledger).absolute()))
    return plan, _versions(plan)


def _cut(plan: Plan, listeners: Sequence[Listener], seconds: float | None) -> Collection:
    """Return the slices of the user's models, and report their numbers to the listeners.

    `seconds` limits the time for the model of a check.
    """
    seeds = seeds_of(plan, lambda text: _tell(listeners, Notice(text)), seconds)
    counts = [seeds.summary()] if seeds.models and (plan.has_seeds or plan.slices) else []
    for line in (*seeds.skipped, *seeds.notes, *counts):
        _tell(listeners, Notice(line))
    return seeds


def _versions(plan: Plan) -> dict[str, str]:
    """Return the versions of all targets' distributions; a second version of one is listed with the target's spec."""
    found: dict[str, str] = {}
    for target in plan.targets:
        for name, version in versions_of(target).items():
            found[name if found.get(name, version) == version else f"{name} of {target}"] = version
    return found


def probe_support(plan: Plan, target: str, on_phase: WorkPhaseListener = unheard) -> Support:
    """Return the support table of one of the plan's targets, probing it (a stage) if it is not cached."""

    end = None if plan.probe_seconds is None else time.monotonic() + plan.probe_seconds

    def watch(done: int, total: int) -> None:
        left = None if end is None else max(0.0, end - time.monotonic())
        on_phase(WorkPhase(f"asking {target} which operators and types it takes, once per version", done, total, left))

    with LocalPool(target, plan.workers, plan.limits) as pool:
        return support_of(
            target, versions_of(target), plan.opsets, ParallelRunner(pool), plan.ops, watch, plan.probe_seconds
        )


def _with_short_probe(plan: Plan) -> Plan:
    """Return the plan with a probe that leaves a campaign of limited time at least half of it; the next one goes on."""
    if plan.seconds is None:
        return plan
    most = (1 - _LEAST_TESTING) * plan.seconds / len(plan.targets)
    return replace(plan, probe_seconds=most if plan.probe_seconds is None else min(most, plan.probe_seconds))


def begin(store: Store, plan: Plan, found: dict[str, str]) -> int:
    """Begin a campaign, or go on with the plan's; return its number."""
    if plan.number not in store.campaigns():
        return store.begin(Campaign(plan.title, plan.seed, plan.remembered(), found, time.time()))
    store.choose(plan.number)
    return plan.number


def _tell(listeners: Sequence[Listener], event: Event) -> None:
    for listener in listeners:
        listener.on(event)


class _Coordinator:
    """One session of a campaign."""

    def __init__(
        self,
        plan: Plan,
        store: Store,
        ledger: Ledger,
        supports: Sequence[Support],
        listeners: Sequence[Listener],
        portion: Portion | None,
        begun: float,
    ) -> None:
        self.plan, self.store, self.supports, self.listeners = plan, store, tuple(supports), listeners
        self.lanes = LaneSupervisor(plan.out / "lanes.log")
        self.triage = TriageQueue(triage_settings(plan))
        self.unattributed = Unattributed()
        self.counters: Counter[str] = Counter()
        self.unsaved: Counter[str] = Counter()
        self.activity = PassActivity()
        self.started, self.begun = time.monotonic(), begun
        self.saved = self.kept = self.measured = self.started
        self.disk = self.named = 0
        self.session = store.begin_session(time.time())
        releases = {target: release_under_test(target) for target in plan.targets}
        self.known = KnownBugs(ledger, name_in_ledger(store.campaign()), releases)
        for problem in enter_findings(self.known, self.store):
            _tell(self.listeners, Notice(problem))
        given = None if portion is None else portion.steered
        self.steered = given if given is not None else self._steered() if plan.steer or portion is not None else ()
        self.portion = portion or Portion(self.session, 0, plan.workers)
        self.division = self._division()

    def run(self) -> None:
        ending = "failed"
        try:
            self._tell_damaged()
            for record in self.store.pending():
                self._submit(record.identifier)
            self._start_lanes()
            self._watch_lanes()
            self._finish_triage()
            self._require_tests()
            ending = "done"
        except KeyboardInterrupt:
            ending = "interrupted"
            _tell(self.listeners, Notice("stopping; the findings so far are kept"))
            self._drain()
            raise
        finally:
            self.lanes.kill()
            self.triage.close()
            self._settle(self.triage.collect())
            self.store.adopt()  # a lane may have saved a finding after its last message was read
            self._tell_damaged()
            self._save()
            self.store.note_session(self.session, self._elapsed(), ending)

    def _start_lanes(self) -> None:
        part = self.portion
        for lane in range(part.first, part.first + self.plan.workers):
            quota = None
            if self.plan.tests is not None:
                quota = self.plan.tests // part.lanes + (lane < self.plan.tests % part.lanes)
                if not quota:
                    continue
            self.lanes.start(Orders(self.plan, self.supports, lane, part.session, 0, quota, self.steered))

    def _tell_damaged(self) -> None:
        """Name the findings whose folders could not be read, each once."""
        for problem in self.store.damaged[self.named :]:
            _tell(self.listeners, Notice(problem))
        self.named = len(self.store.damaged)

    def _steered(self) -> tuple[SignedPredicate, ...]:
        """Return the bugs that earlier sessions found, and those of the ledger; damaged predicates are left out."""
        found = list[SignedPredicate]()
        for record in self.store.findings():
            try:
                bugs = signed_predicates_of(self.store.load(record.identifier))
            except StoreError as error:
                _tell(self.listeners, Notice(str(error)))
            else:
                found += [bug for bug in bugs if bug.predicate.target in self.plan.targets]
        others, problems = self.known.steered()
        for problem in problems:
            _tell(self.listeners, Notice(problem))
        return (*found, *new_ones(others, found))

    def _division(self) -> Division | None:
        """Return the division of the time among arms; None when the producers have fixed shares."""
        if not self.plan.scheduled:
            return None
        rows = self.store.pass_activity()
        pairs = {(target, one, other) for kind, target, one, other, _ in rows if kind == "together"}
        return Division(self.plan, self.session, self.store.arms(), pairs)

    def _divide(self) -> None:
        """Send the lanes new weights of the arms when it is time."""
        weights = None if self.division is None else self.division.weights(time.monotonic())
        if weights is not None:
            self.lanes.divide(weights)

    def _watch_lanes(self) -> None:
        limit, ends = self.plan.seconds, self._end()
        patience = min(max(_LEAST_PATIENCE, _PATIENCE_SHARE * (limit or 0.0)), _MOST_PATIENCE)
        stopped: float | None = None
        while self.lanes.working:
            for message in self.lanes.messages(_TURN):
                self._take(message)
            self._settle(self.triage.collect())
            self._submit_unattributed()
            self._divide()
            self._show()
            over = ends is not None and time.monotonic() > ends
            if stopped is None and (over or self._disk_is_full()):
                self.lanes.stop()
                stopped = self._elapsed()
            if stopped is not None and self._elapsed() - stopped > patience:
                return

    def _end(self) -> float | None:
        """Return the time at which the tests end, None without a limit; say so when the preparation took too long."""
        limit, now = self.plan.seconds, time.monotonic()
        if limit is None:
            return None
        end, least = self.begun + limit, now + _LEAST_TESTING * limit
        if least > end:
            told = f"the preparation took {now - self.begun:.0f} s; testing for {least - now:.1f} s all the same"
            _tell(self.listeners, Notice(told))
        return max(end, least)

    def _disk_is_full(self) -> bool:
        """Measure the campaign's folder now and then, and shorten its logs; tell whether it exceeds `--limit-disk`."""
        now, limit = time.monotonic(), self.plan.limit_disk
        if not self.disk or now - self.measured > MEASURE_EVERY:
            self.measured = now
            for name in LOGS:
                shorten(self.plan.out / name)
            self.disk = size_of(self.plan.out)
            if limit is not None and self.disk > limit:
                text = f"{self.plan.out} has {self.disk / 1e6:,.0f} MB, more than --limit-disk; the tests end"
                _tell(self.listeners, Notice(text))
                return True
        return False

    def _finish_triage(self) -> None:
        """Wait for the findings in triage; those that take too long stay pending."""
        self.lanes.kill()
        until = time.monotonic() + self.plan.triage_seconds
        self._submit_unattributed()
        if self.triage.open:
            some, most = counted(self._left, "finding"), self.plan.triage_seconds
            text = f"the tests have ended; reducing {some} for at most {most:.0f} s; Ctrl-C: later{self._later}"
            _tell(self.listeners, Notice(text))
        total = self._left
        while self.triage.open and self.triage.alive and time.monotonic() < until:
            self._settle(self.triage.collect())
            self._submit_unattributed()
            total = max(total, self._left)
            done, remaining = total - self._left, until - time.monotonic()
            _tell(self.listeners, WorkPhase("reducing findings", done, total, remaining, self.triage.doing))
            self._save_now_and_then()
            time.sleep(_TURN)
        if self.triage.open:
            left = f"{counted(self._left, 'finding')} left{self._later}; --triage-time allows more time"
            _tell(self.listeners, Notice(left))
        elif self._left:
            left = f"{counted(self._left, 'finding')} left for `miscompile reduce`, because they resemble known bugs"
            _tell(self.listeners, Notice(left))

    @property
    def _left(self) -> int:
        """The number of findings in triage, and of those that wait for it."""
        return self.triage.open + len(self.unattributed)

    def _submit(self, identifier: str) -> None:
        """Hand a finding to triage, or let it wait because it has no culprits.

        None waits in a campaign that repeats itself, because the order depends on the clock.
        """
        stored = self._loaded(identifier) if self.plan.steer and self.plan.tests is None else None
        if stored is not None and is_unattributed(stored):
            self.unattributed.add(stored)
        else:
            self.triage.submit(identifier)

    def _submit_unattributed(self) -> None:
        """Hand over the next finding without culprits, if triage is done with the one before."""
        identifier = self.unattributed.take(self.steered, look_alikes=affordable(self.counters))
        if identifier is not None:
            self.triage.submit(identifier)

    @property
    def _later(self) -> str:
        """The way to go on with findings that are left; `check` and `ci` have none but `miscompile reduce`."""
        return ", for `miscompile reduce`" if self.plan.model or not self.plan.steer else ", with --resume"

    def _require_tests(self) -> None:
        """Raise ExecutionError when the lanes died as often as they tested, because that proves nothing."""
        deaths, tests = self.lanes.deaths, self.counters["tests"]
        if deaths and deaths >= tests:
            raise ExecutionError(f"the lanes died {deaths} times in {tests} tests; {self.lanes.log} says more")

    def _drain(self) -> None:
        """After an interrupt: receive the lanes' last messages, for at most 5 seconds."""
        self.lanes.stop()
        until = time.monotonic() + 5.0
        while self.lanes.working and time.monotonic() < until:
            for message in self.lanes.messages(_TURN):
                self._take(message)

    def _take(self, message: Message) -> None:
        if "counters" in message:
            self._count(message["counters"])
        elif "activity" in message:
            self.activity.add(message["activity"])
        elif "finding" in message:
            record, signature = _record_from(message["finding"]), signature_from(message["signature"])
            self._new_finding(record, signature, message["arm"], unexplained=message["unexplained"])
        elif "duplicate" in message:
            signature = signature_from(message["duplicate"])
            self.store.duplicate(signature)
            self.known.sighted(signature)
        elif self.division is not None and "arms" in message:
            self.division.add(message["arms"])
            self.division.add_pairs(message["pairs"])
        elif self.division is not None and "no arm" in message:
            self.division.drop(message["no arm"])
        elif "notice" in message:
            _tell(self.listeners, Notice(message["notice"]))
        elif "usage" in message:
            raise UsageError(message["usage"])
        elif "failure" in message:
            raise ExecutionError(message["failure"])

    def _count(self, more: Mapping[str, int]) -> None:
        self.counters.update(more)
        self.unsaved.update(more)

    def _new_finding(self, record: Record, signature: Signature, arm: str, *, unexplained: bool = False) -> None:
        repeatable = self.plan.tests is not None  # its findings must not depend on the clock
        look = unexplained and (repeatable or affordable(self.counters))
        if self.store.register(record, signature, unexplained=look):
            _tell(self.listeners, Suspected(record.identifier, str(signature), record.nodes))
            self._submit(record.identifier)
            if self.division is not None:
                self.division.new_signature(arm)

    def _settle(self, answers: list[TriageAnswer]) -> None:
        for step in self.triage.steps():
            _tell(self.listeners, Notice(str(step), detail=True))
        for answer in answers:
            self._count({"triage_us": answer.cpu_us})
            self.unattributed.settled(answer.identifier)
            if answer.problem:
                _tell(self.listeners, Notice(answer.problem))
            if answer.died is not None and (found := self._loaded(answer.identifier)):
                self.store.update(replace(found, status="unconfirmed"))
            for identifier in answer.slippages:
                if found := self._loaded(identifier):
                    self._new_finding(record_of(found), found.finding.property.signature, _arm_of(found))
            triaged = None if answer.problem else self._loaded(answer.identifier)
            if triaged is None:
                continue  # pending, for `reduce` or a resumed campaign
            stored = self.store.settle(answer.identifier, told_apart)
            if stored is None:
                self._learn_variant(triaged)
            elif stored.status != "pending":  # the finding that it duplicates is gone meanwhile, if it is
                stored = self._entered(stored)
            if stored is None or stored.status == "known":
                self._count({"known_us": answer.cpu_us})
            if stored is not None and stored.status in REPEATED:
                _tell(self.listeners, Found(stored.finding, fresh=stored.status == "confirmed"))
                self._steer(stored)
                if self.division is not None and stored.status == "confirmed":
                    self.division.confirmed(_arm_of(stored))

    def _loaded(self, identifier: str) -> Stored | None:
        """Return a finding; None, and a notice, when its folder was damaged or moved away meanwhile."""
        try:
            return self.store.load(identifier)
        except StoreError as error:
            _tell(self.listeners, Notice(str(error)))
            return None

    def _entered(self, stored: Stored) -> Stored | None:
        """Enter a triaged finding in the ledger; return its new state, None when another finding has its signature."""
        fresh = self.known.enter(stored)
        return fresh if fresh == stored or self.store.update(fresh) else None

    def _learn_variant(self, merged: Stored) -> None:
        """Let the lanes know the predicate of a finding that was merged into another one."""
        if fresh := learn_variant(self.store, merged):
            self._steer(fresh)

    def _steer(self, stored: Stored) -> None:
        """Let the lanes steer past a new bug, unless the number of tests is fixed: then the campaign is repeatable."""
        if self.plan.steer and self.plan.tests is None:
            fresh = [bug for bug in signed_predicates_of(stored) if bug not in self.steered]
            self.steered = (*self.steered, *fresh)
            for bug in fresh:
                self.lanes.tell(bug)

    def _steer_past_others(self) -> None:
        """Let the lanes steer past the bugs that other campaigns have entered meanwhile, as `_steer` does."""
        for bug in new_ones(self.known.steered()[0], self.steered):
            self.steered = (*self.steered, bug)
            self.lanes.tell(bug)

    def _show(self) -> None:
        arms = {} if self.division is None else dict(self.division.counts)
        _tell(self.listeners, Progress(time.monotonic() - self.begun, dict(self.counters), arms, self.disk))
        self._save_now_and_then()

    def _save_now_and_then(self) -> None:
        if time.monotonic() - self.saved > _SAVE_EVERY:
            self._save()

    def _save(self) -> None:
        self.store.add_counters(dict(self.unsaved))
        self.unsaved.clear()
        self.store.add_pass_activity(self.activity.take())
        if self.known.save() and self.plan.steer and self.plan.tests is None:
            self._steer_past_others()
        if self.division is not None:
            self.store.add_arms(self.division.take())
        self.store.note_session(self.session, self._elapsed())
        self.saved = time.monotonic()
        if self.saved - self.kept > _KEEP_EVERY:
            self.store.keep_figures()
            self.kept = self.saved

    def _elapsed(self) -> float:
        return time.monotonic() - self.started


def _arm_of(stored: Stored) -> str:
    """Return the arm whose test found it; an empty name in a campaign of fixed shares."""
    return str(stored.finding.case.recipe.get(ARM, ""))


def _record_from(data: Mapping[str, Any]) -> Record:
    """Return the record that a lane has sent."""
    return Record(**{**data, "culprits": tuple(data["culprits"])})
