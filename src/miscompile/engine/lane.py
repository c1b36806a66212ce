"""A lane: one producer process with its worker, pipelined. Run as `python -m miscompile.engine.lane`.

The coordinator writes JSON lines to a lane's standard input: the orders, and later the bugs that became known and the
weights of the arms. It closes that input to stop the lane. The lane writes JSON lines to its standard output: counters,
and findings, whose folders are on disk by then. A lane is deterministic in these lines: the number of submitted cases
that are not judged is fixed, and every violation is attributed before the next case is drawn.
"""

import gc
import json
import os
import select
import signal
import sys
import time
from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from typing import Any, TextIO

from miscompile.base.errors import MiscompileError, ModelError, RejectedDraft, UsageError
from miscompile.base.rng import stream
from miscompile.core.activity import PassActivity
from miscompile.core.case import Case
from miscompile.core.events import MODEL_JUDGED, MODEL_TESTS, MODEL_UNDECIDED, UNDECIDED
from miscompile.core.examination import Examination, conclude
from miscompile.core.outcome import DEFECTS, Defect, Outcome, TimedOut, is_death
from miscompile.core.pool import Pool
from miscompile.core.ports import Oracle
from miscompile.core.run import Run
from miscompile.core.tensor import Tensor
from miscompile.core.verdict import Evidence, Holds, Inconclusive, Needs, Verdict, Violated
from miscompile.engine.hazards import KNOWN_COST, LEAST_PART, CaseClass, Hazards, class_of
from miscompile.engine.meter import ArmMeter
from miscompile.engine.plan import Plan, plan_from
from miscompile.engine.refusals import counted_as
from miscompile.engine.searches import Searches
from miscompile.engine.steering import ATTEMPTS, SEARCH_COST, Course, Steering
from miscompile.engine.tasks import tasks_of
from miscompile.engine.wiring import make_oracle, make_pool, make_producer, oracle_context
from miscompile.environments.resolve import versions_of
from miscompile.findings import folder
from miscompile.findings.store import UNEXPLAINED, record_of
from miscompile.findings.tasks import MADE, NOT_DRAWN
from miscompile.ops.support import TABLES, Support, support_from
from miscompile.oracles.differential import ABSENT, MADE_FOR
from miscompile.producers.around import AROUND
from miscompile.producers.scheduled import ARM, CHECK, Scheduled
from miscompile.targets.registry import frames_of, names_of, parse_target
from miscompile.triage.attribution import (
    ATTRIBUTED,
    MOST_UNATTRIBUTED,
    MOST_UNLIKE,
    SYMPTOM_TEXT,
    ConfirmedViolation,
    Confirmer,
    model_of,
    to_stored,
)
from miscompile.triage.recognition import OperatorCounts, SignedPredicate, resembles, signed_predicate_from
from miscompile.triage.script import expected_of, first_script
from miscompile.triage.signature import signature_of, symptom_of

AHEAD = 3
"""Cases that are submitted and not judged yet: enough to keep the worker busy, and constant for determinism."""

FEW_TASKS = 100
"""Tasks that are left to a lane up to which it submits them one by one, so that its death costs no other task.

A lane that dies leaves the cases ahead undone. A resumed campaign would have the same tasks ahead of the same death.
"""

MOST_ORACLES = 1024
"""Sets of passes that are off, each with a check, whose oracles are kept."""

CORPUS = "corpus"
"""The subfolder of a campaign with seeds for later sessions and for restarted lanes."""

RARELY = (20_000, 20, 50)
"""Thresholds of the garbage collector: rare, because reference counts free nearly all values of a lane."""

LIFETIME = 100_000
"""Cases after which another process continues a lane, because libraries leak memory. A number of cases and not of
bytes, so that a campaign of a fixed number of tests is repeatable."""

RETIRED = 4
"""Exit status of a lane that another process should continue."""

TESTS_OF = "tests of "
CPU_OF = "compiler_cpu_us of "
"""Begin the counters of the tests in which a target took part, and of its CPU time in them, where there are several."""

WITHOUT = "tests without "
"""Begin of the counters of tests with a pass off; TARGET:PASS follows."""

_REPORT_EVERY = 0.25
_ASK_EVERY = 0.02
_COUNTED = {"unsupported": "unsupported", "rejected": "invalid"}


@dataclass(frozen=True, slots=True)
class Orders:
    """The orders of a lane: the plan, the support tables of its targets, its number, and its range of cases.

    `known` are the bugs that are known from the start; `quota` is the index after the last case (None: no limit),
    `first` the index of the first one. `weights` are those of the arms of a scheduled campaign (empty: the prior ones).
    """

    plan: Plan
    supports: tuple[Support, ...]
    lane: int
    session: int
    first: int
    quota: int | None
    known: tuple[SignedPredicate, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)

    def as_json(self) -> str:
        """Print the orders in one line."""
        tables = [
            {**{name: sorted(getattr(support, name)) for name in TABLES}, "open": support.open}
            for support in self.supports
        ]
        rest = {name: getattr(self, name) for name in ("lane", "session", "first", "quota")}
        known = [bug.as_json() for bug in self.known]
        return json.dumps(
            {"plan": self.plan.as_json(), "supports": tables, **rest, "known": known, "weights": self.weights}
        )


def orders_from(text: str) -> Orders:
    """Read back what `Orders.as_json` printed."""
    data: dict[str, Any] = json.loads(text)
    supports = tuple(replace(support_from(table), open=table["open"]) for table in data["supports"])
    known = tuple(map(signed_predicate_from, data["known"]))
    place = (data["lane"], data["session"], data["first"], data["quota"])
    return Orders(plan_from(data["plan"]), supports, *place, known, data["weights"])


_Drawn = tuple[Case, Course, Oracle, tuple[Run, ...], CaseClass]
"""A case with the course of its test, its oracle, its runs, and its class."""


@dataclass(slots=True)
class _Ahead:
    """A case that was submitted to the worker, with the oracle that planned its runs."""

    index: int
    case: Case
    oracle: Oracle
    disabled: Mapping[str, frozenset[str]]
    runs: tuple[Run, ...]
    ticket: int
    kind: CaseClass
    spent_us: int
    """CPU time of the lane so far, in microseconds."""


@dataclass(frozen=True, slots=True)
class _Suspect:
    """A violation that no predicate of a known bug explains; `outcome` is that of the faulty run."""

    ahead: _Ahead
    violated: Violated
    outcome: Outcome | None
    expected: Tensor | None
    """The right value of the bad output, where another target gave it."""
    spent_us: int
    """CPU time of its test, in microseconds."""


class Lane:
    """The main loop of a lane. `out` gets the messages."""

    def __init__(self, orders: Orders, pool: Pool, confirmer: Confirmer, inbox: "Inbox", out: TextIO) -> None:
        self.orders, self.pool, self.confirmer, self.inbox, self.out = orders, pool, confirmer, inbox, out
        self.plan = orders.plan
        self.versions = {target: versions_of(target) for target in self.plan.targets}
        self.producer = make_producer(
            self.plan, *orders.supports, corpus=self.plan.own / CORPUS, name=f"lane-{orders.lane}"
        )
        self.tasks = tasks_of(self.plan, self.producer, orders.session, orders.lane)
        abouts = {target: parse_target(target).about for target in self.plan.targets}
        self.steering = Steering(abouts, enabled=self.plan.steer, known=list(orders.known))
        if isinstance(self.producer, Scheduled):
            self.producer.prepare()
            self.producer.divide(orders.weights or self.producer.weights)
        self.hazards = Hazards[CaseClass]()
        self.risks = Hazards[str](LEAST_PART)
        """Of each target, where several are held against each other."""
        self.searches = Searches[_Suspect](limited=self.plan.tests is None)
        self.oracle_without = lru_cache(MOST_ORACLES)(self._oracle_without)
        self.meter = ArmMeter(names_of(self.plan.targets), self.plan.limit_seconds)
        self.counters: Counter[str] = Counter()
        self.activity = PassActivity(frames_of(self.plan.targets), names_of(self.plan.targets))
        self._next = orders.first
        self._done: dict[int, list[Outcome]] = {}
        self._ahead: deque[_Ahead] = deque()
        self._reported = time.monotonic()
        self._asked = 0.0
        self._deaths = (0, 0)
        self._defective: set[str] = set()
        self._compiler_cpu = 0.0

    def run(self) -> bool:
        """Test cases until the quota is reached, the tasks are done, or the coordinator closes the standard input.

        Return True when neither has happened, but the lane has tested `LIFETIME` cases: another process should go on.
        """
        quota = last = self._last()
        retirement = self.orders.first + LIFETIME
        if quota is None or quota > retirement:
            quota = retirement
        if self._one_by_one:
            self._report()  # the supervisor must know before the first task
        while not self._stopped() and (self._next < quota or self._ahead):
            most = 1 if self._one_by_one else AHEAD
            while len(self._ahead) < most and self._next < quota and self._submit():
                pass
            self._settle_next()
            if self._one_by_one or time.monotonic() - self._reported > _REPORT_EVERY:
                self._report()
        while self._ahead:
            self._settle_next()
        while self.searches.waiting:
            self._leave_to_triage(self.searches.waiting.popleft())
        self._report()
        return not self.inbox.closed and (last is None or self._next < last)

    @property
    def _one_by_one(self) -> bool:
        """Tell whether few tasks are left, so that only one is submitted at a time."""
        return self.tasks is not None and len(self.tasks.names) - self._next <= FEW_TASKS

    def _last(self) -> int | None:
        """Return the index after the last case, None without a limit."""
        limits = (self.orders.quota, None if self.tasks is None else len(self.tasks.names))
        return min((limit for limit in limits if limit is not None), default=None)

    def _stopped(self) -> bool:
        """Read the coordinator's lines; tell whether it has stopped the lane.

        It is asked at intervals, because that takes a system call.
        """
        now = time.monotonic()
        if now - self._asked < _ASK_EVERY:
            return False
        self._asked = now
        for line in self.inbox.lines():
            message = json.loads(line)
            self.steering.learn(map(signed_predicate_from, message.get("known", ())))
            if "weights" in message and isinstance(self.producer, Scheduled):
                self.producer.divide(message["weights"])
        return self.inbox.closed

    def _oracle_without(self, disabled: frozenset[tuple[str, frozenset[str]]], check: str) -> Oracle:
        """Return the plan's oracle for a check with passes off; cached, because few sets of passes are common."""
        return make_oracle(self.plan, dict(disabled), check)

    def _settle_next(self) -> None:
        """Judge the oldest submitted case. A case on which the tool itself fails is counted and skipped."""
        if not self._ahead:
            return
        ahead = self._ahead.popleft()
        try:
            self._settle(ahead)
        except (ModelError, RejectedDraft) as error:
            self.counters["failed cases"] += 1
            print(f"case {ahead.index} cannot be handled: {error}", file=sys.stderr)
        if self.tasks is not None:
            self.tasks.finish(ahead.index, MADE)

    def _submit(self) -> bool:
        """Submit the next case; return False when its task has none."""
        index = self._next
        start = time.thread_time_ns()
        drawn = self._drawn(index) if self.tasks is None else self._drawn_for_task(index)
        self._next += 1
        if drawn is None:
            return False
        case, course, oracle, runs, kind = drawn
        generated = time.thread_time_ns()
        self.counters["generate_us"] += (generated - start) // 1000
        ticket, submitted = self.pool.submit(runs), time.thread_time_ns()
        spent = (submitted - start) // 1000
        self._ahead.append(_Ahead(index, case, oracle, course.disabled, runs, ticket, kind, spent))
        self.counters["transfer_us"] += (submitted - generated) // 1000
        return True

    def _drawn_for_task(self, index: int) -> _Drawn | None:
        """Return what `_drawn` returns, of the task of this index; None when the producer has no case of that."""
        assert self.tasks is not None  # the caller has checked
        self.tasks.begin(index)
        try:
            return self._drawn(index)
        except RejectedDraft:
            self.tasks.finish(index, NOT_DRAWN)
            self.counters["tasks not drawn"] += 1
            return None

    def _drawn(self, index: int) -> _Drawn:
        """Return the case of this index with the course of its test, its oracle, its runs, and its class.

        A draft that is given up, because of a known bug or because its class is dangerous, is followed by another of
        the same index.
        """
        plan, orders = self.plan, self.orders
        place = (orders.lane, orders.session, index)
        for attempt in range(ATTEMPTS):
            again = (attempt,) if attempt else ()
            rng = stream(plan.seed, "lane", *place, *again)
            case = self._with_recipe(self.producer.propose(rng), index, attempt)
            case, alone = self._for_some(case, (*place, *again))
            course = self.steering.course(case, stream(plan.seed, "steering", *place, *again))
            oracle = self.oracle_without(frozenset(course.disabled.items()), case.recipe.get(CHECK, ""))
            runs = oracle.plan(case, rng)
            kind = class_of(case, runs)
            share = self.hazards.share(kind) if plan.steer else 1.0  # nearly always 1, and making a stream is dear
            dangerous = alone or (share < 1.0 and stream(plan.seed, "hazard", *place, *again).random() >= share)
            if not course.given_up and not dangerous:
                break
            self.counters["drafts given up" if course.given_up else "dangerous drafts given up"] += 1
        return case, course, oracle, runs, kind

    def _for_some(self, case: Case, place: tuple[int, ...]) -> tuple[Case, bool]:
        """Return the case without the targets that fail too often for this test, and whether fewer than two are left.

        Then the case is returned as it is. `place` is that of the draft in the campaign.
        """
        if len(self.plan.targets) == 1 or not self.plan.steer:
            return case, False
        targets = case.recipe.get(MADE_FOR, self.plan.targets)
        rng = stream(self.plan.seed, "part", *place)
        absent = [one for one in targets if rng.random() >= self.risks.share(one)]
        if len(targets) - len(absent) < 2:
            return case, True
        return (replace(case, recipe={**case.recipe, ABSENT: absent}) if absent else case), False

    def _with_recipe(self, case: Case, index: int, attempt: int) -> Case:
        """Return the case with the place in the campaign from which it can be drawn again."""
        orders = self.orders
        place = {"seed": self.plan.seed, "lane": orders.lane, "session": orders.session, "index": index}
        return replace(case, recipe={**place, **case.recipe, **({"attempt": attempt} if attempt else {})})

    def _settle(self, ahead: _Ahead) -> None:
        begin = time.thread_time_ns()
        while ahead.ticket not in self._done:
            self._done.update(self.pool.poll(self.plan.limit_seconds))
        outcomes = self._done.pop(ahead.ticket)
        start = time.thread_time_ns()
        self.counters["transfer_us"] += (start - begin) // 1000
        seen = conclude(ahead.runs, outcomes, ahead.oracle, self.confirmer.pool)
        self.counters["judge_us"] += (time.thread_time_ns() - start) // 1000
        self.counters["second_rounds"] += seen.rounds
        self.counters["tests"] += 1
        if self.plan.model is not None and str(ahead.case.recipe.get("producer", "")).startswith(AROUND):
            self._count_whole(seen.verdict)
        self.steering.count(ahead.disabled)
        for target, names in ahead.disabled.items():
            self.counters.update(f"{WITHOUT}{target}:{name}" for name in names)
        self._count_hazards(ahead, outcomes)
        self.counters.update(counted_as(ahead.case, ahead.runs, outcomes))
        for outcome in outcomes:
            spent = outcome.observations
            self.counters["compiler_us"] += int(1e6 * (spent.compile_seconds + spent.run_seconds))
            if isinstance(outcome, Defect):
                self._log_defect(ahead.index, outcome)
        if ahead.case.recipe.get("observe"):
            for run, outcome in zip(ahead.runs, outcomes, strict=True):
                self.activity.note(ahead.case.recipe, run, outcome)
        self.producer.learn(ahead.case, outcomes, seen.verdict)
        known, new = self._held_against_known(ahead, seen)
        own = ahead.spent_us + (time.thread_time_ns() - begin) // 1000
        self.meter.note(ahead.case.recipe, ahead.runs, outcomes, own)
        spent_us = own + round(1e6 * sum(outcome.observations.cpu_seconds for outcome in outcomes))
        self.counters["test_us"] += spent_us
        self._count_known(spent_us * known)
        self.searches.tested_us += spent_us
        if new is not None:
            self._pursue(_Suspect(ahead, new, seen.faulty, expected_of(seen), spent_us))
        if (due := self.searches.due()) is not None and not self._recognised(due.ahead, due.violated, due.outcome):
            self._search(due)

    def _count_hazards(self, ahead: _Ahead, outcomes: Sequence[Outcome]) -> None:
        """Count the deaths and hangs of a test against its class, or against each target if several took part."""
        if len(self.plan.targets) == 1:
            self.hazards.count(ahead.kind, outcomes)
            return
        by_target: dict[str, list[Outcome]] = {}
        for run, outcome in zip(ahead.runs, outcomes, strict=True):
            by_target.setdefault(run.target, []).append(outcome)
        for target, own in by_target.items():
            self.risks.count(target, own)
            self.counters[f"{TESTS_OF}{target}"] += 1
            self.counters[f"{CPU_OF}{target}"] += round(1e6 * sum(one.observations.cpu_seconds for one in own))

    def _count_whole(self, verdict: Verdict) -> None:
        """Count a test of the user's model as a whole."""
        self.counters[MODEL_TESTS] += 1
        if isinstance(verdict, Inconclusive):
            self.counters[f"{MODEL_UNDECIDED}{verdict.reason}"] += 1
        else:
            self.counters[MODEL_JUDGED] += 1

    def _log_defect(self, index: int, defect: Defect) -> None:
        """Count a failure of an adapter, and log the first one of each place."""
        self.counters[DEFECTS] += 1
        place = defect.frames[0] if defect.frames else ""
        if place not in self._defective:
            self._defective.add(place)
            print(
                f"case {index} meets a defect of the adapter: {defect.kind}: {defect.message} ({place})",
                file=sys.stderr,
            )

    def _held_against_known(self, ahead: _Ahead, seen: Examination) -> tuple[bool, Violated | None]:
        """Count the verdict; return whether it is a violation that shows a known bug, and the violation if not."""
        verdict = seen.verdict
        match verdict:
            case Holds(note):
                if note:
                    self.counters["mismatches_judged_benign"] += 1
            case Inconclusive(reason):
                self.counters[_COUNTED.get(reason, f"{UNDECIDED}{reason}")] += 1
            case Violated():
                self.counters["violations"] += 1
                self.meter.violation(ahead.case.recipe)
                known = self._recognised(ahead, verdict, seen.faulty)
                return known, None if known else verdict
            case Needs():
                raise AssertionError("an examination never ends with Needs")
        return False, None

    def _recognised(self, ahead: _Ahead, violated: Violated, outcome: Outcome | None) -> bool:
        """Tell whether the predicate of a known bug explains a violation, which then is a duplicate."""
        bug = self.steering.recognise(ahead.case, violated.evidence, outcome)
        rng = stream(self.plan.seed, "doubt", ahead.case.program.digest)
        if bug is None or self.steering.doubts(bug, rng):
            return False
        self.counters["recognised"] += 1
        self._charge(ahead, violated.evidence.faulty.target, bug.predicate.passes, 1.0)
        self.risks.charge(violated.evidence.faulty.target, 1.0)
        self._send({"duplicate": asdict(bug.signature)})
        return True

    def _count_known(self, spent_us: int) -> None:
        """Count CPU time that went into a known bug."""
        self.counters["known_us"] += spent_us
        self.searches.known_us += spent_us

    def _pursue(self, suspect: _Suspect) -> None:
        """Search for the culprits of a violation now, or later if searches have had their share of the time.

        Triage searches for those of a hang, because every build of the search lasts as long as a time limit, and for
        those of a violation that resembles a known bug once such bugs have taken their share.
        """
        if len(self.plan.targets) == 1 and suspect.outcome is not None and is_death(suspect.outcome):
            self.hazards.charge(suspect.ahead.kind, SEARCH_COST)
        if isinstance(suspect.outcome, TimedOut):
            self._leave_to_triage(suspect)
            return
        if not self.searches.may_look and self._resembling(suspect):
            self.counters["look-alikes postponed"] += 1
            self._leave_to_triage(suspect)
            return
        if self.searches.allowed:
            self._search(suspect)
            return
        self.counters["searches postponed"] += 1
        oldest = self.searches.postpone(suspect)
        if oldest is not None:
            self._leave_to_triage(oldest)

    def _search(self, suspect: _Suspect) -> None:
        """Confirm a violation and find its culprits; report it if it is new."""
        begin, compiling = time.thread_time_ns(), self.confirmer.pool.compiler_cpu_seconds
        ahead, evidence = suspect.ahead, suspect.violated.evidence
        confirmed = self.confirmer.investigate(ahead.case, evidence, suspect.outcome)
        own = (time.thread_time_ns() - begin) // 1000
        spent = own + round(1e6 * (self.confirmer.pool.compiler_cpu_seconds - compiling))
        self.counters["search_us"] += own
        self.counters["test_us"] += spent
        self.meter.cost(ahead.case.recipe, spent)
        self.searches.searched_us += spent
        if confirmed is None:
            self.counters["unstable"] += 1
            return
        self._charge(ahead, evidence.faulty.target, confirmed.signature.culprits, SEARCH_COST)
        if not self._report_if_new(suspect, confirmed, attributed=True):
            self._count_known(spent + suspect.spent_us)
            self.risks.charge(evidence.faulty.target, KNOWN_COST)

    def _charge(self, ahead: _Ahead, target: str, passes: Collection[str], cost: float) -> None:
        """Add the cost of a bug, in tests, to what brings it."""
        self.steering.charge(target, passes, cost)
        if not passes and ahead.kind[2]:  # the transform brings the bug, and no pass can be switched off
            self.hazards.charge(ahead.kind, cost)

    def _leave_to_triage(self, suspect: _Suspect) -> None:
        """Report a violation whose culprits nobody has searched for; triage does so."""
        evidence, case = suspect.violated.evidence, suspect.ahead.case
        signature = signature_of(evidence, suspect.outcome, (), model_of(case))
        self._report_if_new(suspect, ConfirmedViolation(evidence, signature), attributed=False)

    def _resembling(self, suspect: _Suspect) -> bool:
        """Tell whether a violation may well be one of the known bugs."""
        evidence, operators = suspect.violated.evidence, OperatorCounts(suspect.ahead.case.program)
        return resembles(self.steering.known, evidence.faulty.target, symptom_of(evidence, suspect.outcome), operators)

    def _report_if_new(self, suspect: _Suspect, confirmed: ConfirmedViolation, *, attributed: bool) -> bool:
        ahead = suspect.ahead
        rng = stream(self.plan.seed, "another", ahead.case.program.digest)
        unexplained = self.steering.may_be_another(ahead.case, confirmed.signature, rng)
        if not self.confirmer.is_new(confirmed.signature, self._most(suspect)):
            self.counters["recognised by message" if confirmed.unseen else "duplicates"] += 1
            repeatable = self.plan.tests is not None  # whichever lane has met the bug
            if attributed and not confirmed.unseen and not repeatable:
                self.steering.widen(ahead.case, confirmed.evidence, suspect.outcome, confirmed.signature)
            self._send({"duplicate": asdict(confirmed.signature)})
            return False
        facts: dict[str, bool | str] = {ATTRIBUTED: True} if attributed else {}
        if unexplained:
            facts[UNEXPLAINED] = True
        if not confirmed.signature.culprits:
            facts[SYMPTOM_TEXT] = symptom_of(confirmed.evidence, suspect.outcome).text
        self._report_finding(suspect, confirmed, facts)
        return True

    def _most(self, suspect: _Suspect) -> int:
        """Return how many findings of this kind and stage may be reported without culprit and message."""
        alike = isinstance(suspect.outcome, TimedOut) or self._resembling(suspect)
        return MOST_UNATTRIBUTED if alike else MOST_UNLIKE

    def _report_finding(
        self, suspect: _Suspect, confirmed: ConfirmedViolation, facts: Mapping[str, bool | str]
    ) -> None:
        ahead, versions = suspect.ahead, self._versions(confirmed)
        stored = to_stored(
            confirmed.evidence,
            confirmed.signature,
            ahead.case,
            versions,
            self.confirmer.context,
            test=ahead.index,
            **facts,
        )
        if not folder.place(self.plan.out, stored.finding.identifier).exists():  # a triaged finding is not overwritten
            evidence, culprits = confirmed.evidence, confirmed.signature.culprits
            same = _place_of(evidence) == _place_of(suspect.violated.evidence)
            expected = suspect.expected if same else None
            script = first_script(ahead.case, evidence, suspect.outcome, culprits, versions, expected)
            folder.save(self.plan.out, replace(stored, script=script))
        record, signature = asdict(record_of(stored)), asdict(confirmed.signature)
        arm = ahead.case.recipe.get(ARM, "")
        self._send({"finding": record, "signature": signature, "unexplained": UNEXPLAINED in facts, "arm": arm})

    def _versions(self, confirmed: ConfirmedViolation) -> dict[str, str]:
        """Return the versions of the compilers in a violation, those of the faulty one first."""
        reference, faulty = confirmed.evidence.reference, confirmed.evidence.faulty.target
        own = self.versions[faulty]
        other = {} if reference is None else versions_of(reference.target)
        return {**own, **{name: version for name, version in other.items() if name not in own}}

    def _report(self) -> None:
        deaths, timeouts = self.pool.counters.deaths, self.pool.counters.timeouts
        self.counters["deaths"] += deaths - self._deaths[0]
        self.counters["timeouts"] += timeouts - self._deaths[1]
        self._deaths = (deaths, timeouts)
        cpu = self.pool.compiler_cpu_seconds + self.confirmer.pool.compiler_cpu_seconds
        self.counters["compiler_cpu_us"] += round(1e6 * (cpu - self._compiler_cpu))
        self._compiler_cpu = cpu
        settled = self._next - len(self._ahead)
        if self.tasks is not None:
            self.tasks.write()
        lost = max(1, len(self._ahead)) if self._one_by_one else AHEAD + 1
        self._send({"counters": dict(self.counters), "next": settled, "lost": lost})
        self.counters.clear()
        if isinstance(self.producer, Scheduled):
            self._send({"arms": self.meter.take(), "pairs": self.meter.take_pairs()})
            for arm in self.producer.take_removed():
                self._send({"no arm": arm})
        if self.activity.counts:
            self._send({"activity": self.activity.take()})
        self._reported = time.monotonic()

    def _send(self, message: dict[str, Any]) -> None:
        self.out.write(json.dumps(message) + "\n")
        self.out.flush()


def _place_of(evidence: Evidence) -> tuple[object, ...]:
    """Return which value a violation is about."""
    return (evidence.kind, evidence.details.get("feed", 0), evidence.details.get("output"))


class Inbox:
    """The lines of the coordinator, read without waiting. `closed` is True when it has closed its end, or has died."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._rest = b""
        self.closed = False

    def first(self) -> str:
        """Wait for one line and return it; empty when the coordinator has closed its end before one was complete."""
        while b"\n" not in self._rest and not self.closed:
            self._read()
        line, newline, self._rest = self._rest.partition(b"\n")
        return line.decode() if newline else ""

    def lines(self) -> list[str]:
        """Return the complete lines that are there now."""
        while not self.closed and select.select([self._descriptor], [], [], 0)[0]:
            self._read()
        *whole, self._rest = self._rest.split(b"\n")
        return [line.decode() for line in whole]

    def _read(self) -> None:
        data = os.read(self._descriptor, 1 << 16)
        self._rest += data
        self.closed = not data


def main() -> int:
    """Run the lane under the orders on standard input; return the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # other output must not mix with the messages
    try:
        inbox = Inbox(0)
        given = inbox.first()
        if not given:
            return 0  # the campaign has ended before this lane was loaded
        orders = orders_from(given)
        with make_pool(orders.plan, AHEAD) as pool, make_pool(orders.plan) as second:
            confirmer = Confirmer(second, oracle_context(orders.plan), orders.plan.seed)
            lane = Lane(orders, pool, confirmer, inbox, out)
            gc.freeze()  # modules and tables live as long as the lane, so that no collection need visit them
            gc.set_threshold(*RARELY)
            retired = lane.run()
    except UsageError as error:
        out.write(json.dumps({"usage": str(error)}) + "\n")
        out.flush()
        return 2
    except MiscompileError as error:
        out.write(json.dumps({"failure": str(error)}) + "\n")
        out.flush()
        return 3
    return RETIRED if retired else 0


if __name__ == "__main__":
    sys.exit(main())
